package run

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// Sinks change no bit of a run, and a webhook hears how it ended; one that hangs costs nothing but the wait at the end.
func TestSinksChangeNoBit(t *testing.T) {
	var mu sync.Mutex
	var events []string
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			Event string
			Step  int
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &m); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		mu.Lock()
		defer mu.Unlock()
		events = append(events, m.Event)
	}))
	defer hook.Close()
	data := traintest.Data(t)
	plain := mustRun(t, Options{Config: smallConfig(t, data), Dir: filepath.Join(t.TempDir(), "run"), Threads: 1})
	told := smallConfig(t, data, "log.sinks=tensorboard, prometheus, trackio", "samples.every=5",
		"samples.tokens=4", "log.prometheus_listen=127.0.0.1:0",
		"log.trackio_url="+hook.URL+"/gone", "log.webhook="+hook.URL)
	dir := filepath.Join(t.TempDir(), "run")
	r := mustRun(t, Options{Config: told, Dir: dir, Threads: 1})
	if r.WeightsHash != plain.WeightsHash || r.OptimizerHash != plain.OptimizerHash {
		t.Errorf("weights %s and %s", r.WeightsHash, plain.WeightsHash)
	}
	if !slices.Contains(events, "ended") {
		t.Errorf("the webhook heard %q", events)
	}
	files, err := filepath.Glob(filepath.Join(dir, "tensorboard", "*tfevents*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("event files %q, %v", files, err)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "samples/0") {
		t.Errorf("the event file has no text that the model wrote: %v", err)
	}
}

// A sink that cannot be opened ends the run before its first step, by the name of its key.
func TestAPortInUseNamesItsKey(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	cfg := smallConfig(t, traintest.Data(t), "log.sinks=prometheus",
		"log.prometheus_listen="+strings.TrimPrefix(taken.URL, "http://"))
	_, err := Run(t.Context(), Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run"), Threads: 1})
	if problem, ok := err.(config.Problem); !ok || problem.Key != "log.prometheus_listen" {
		t.Errorf("%v", err)
	}
}
