package sinks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/config"
	_ "anneal/internal/torture"
	"anneal/internal/webguard/guardtest"
	"anneal/train"
)

// options returns those of a run whose warnings are collected.
func options(t *testing.T, l config.Log) (Options, func() string) {
	t.Helper()
	if l.Every == 0 {
		l.Every = 1
	}
	l.TrackioProject = "p"
	var mu sync.Mutex
	var said []string
	warn := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, text)
	}
	o := Options{
		Log: l, Dir: t.TempDir(), Name: "go", ID: "00ff", Config: "seed: 1\n", Family: "llama", Parameters: 7,
		Values: map[string]string{"seed": "1"}, Memory: map[string]int64{"activations": 42}, Warn: warn,
	}
	return o, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(said, "\n")
	}
}

func open(t *testing.T, o Options) *Sinks {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stepOf(n int) Step {
	e := train.NewEvent()
	e.Step, e.Steps, e.Tokens, e.Targets = n, 1_000_000, int64(100*n), 100
	e.Loss, e.GradNorm, e.LR, e.TokensPerSecond = 3-float64(n)/1000, 0.5, 1e-3, 1234
	return Step{Event: e, Took: 250 * time.Millisecond, Phases: [train.Phases]time.Duration{time.Millisecond}}
}

// Servers that never answer cost a run no step, and its end no more than the patience for all of them together. What
// was lost is said.
func TestSinksThatHangCostNoStep(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = 200 * time.Millisecond
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hung.Close()
	defer close(release)
	o, said := options(t, config.Log{
		Sinks: config.Sinks{config.Trackio, config.Prometheus, config.TensorBoard}, PrometheusListen: "127.0.0.1:0",
		TrackioURL: hung.URL, Webhook: hung.URL,
	})
	s := open(t, o)
	began, longest := time.Now(), time.Duration(0)
	const steps = 20_000
	for n := range steps {
		at := time.Now()
		s.Step(stepOf(n + 1))
		s.Alert(Alert{Kind: "warning", Step: n, Text: fmt.Sprint(n)})
		longest = max(longest, time.Since(at))
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%d steps took %v, the longest %v", steps, took, longest)
	}
	began = time.Now()
	s.Close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing took %v", took)
	}
	for _, want := range []string{"log.webhook was too slow or away, or refused them: dropped"} {
		if !strings.Contains(said(), want) {
			t.Errorf("the run was not told %q, but\n%s", want, said())
		}
	}
}

func TestAlertsArePosted(t *testing.T) {
	defer func(was time.Duration) { webhookPause = was }(webhookPause)
	webhookPause = time.Millisecond
	var mu sync.Mutex
	var got []message
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls < 3 { // two attempts fail
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.Method != "POST" {
			t.Errorf("%s: %v", r.Method, err)
		}
		got = append(got, m)
	}))
	defer server.Close()
	o, said := options(t, config.Log{Webhook: server.URL + "/secret"})
	s := open(t, o)
	bad := stepOf(7)
	bad.Loss, bad.Skipped = math.NaN(), true
	s.Step(bad)
	s.Step(bad)                                                     // within a minute: one alert
	s.Alert(Alert{Kind: "warning", Step: 7, Text: skipText["nan"]}) // said twice
	s.Alert(Alert{Kind: "ended", Step: 9})
	s.Close()
	if len(got) != 2 || got[0].Event != "nan" || got[0].Step != 7 || got[0].Level != "warn" || got[0].Run != "go" ||
		!strings.Contains(got[0].Text, "anneal go, step 7: not a number") || got[1].Event != "ended" ||
		got[1].Level != "info" {
		t.Errorf("posted %+v", got)
	}
	if said() != "" {
		t.Errorf("said %q", said())
	}

	calls = -1000 // every attempt fails: after three the alert is given up
	s = open(t, o)
	s.Alert(Alert{Kind: "failed"})
	s.Close()
	if calls != -997 || !strings.Contains(said(), "502") || strings.Contains(said(), "secret") {
		t.Errorf("%d calls; said %q", calls+1000, said())
	}
}

// A batch that trackio refuses is sent again with the same ids.
func TestTrackioGetsEveryStepOnce(t *testing.T) {
	t.Setenv("TRACKIO_WRITE_TOKEN", "tok")
	var mu sync.Mutex
	steps, alerts := map[string]int{}, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		var b struct {
			Logs   []trackioLog
			Alerts []trackioAlert
		}
		if err := json.Unmarshal(body, &b); err != nil || r.Header.Get("X-Trackio-Write-Token") != "tok" {
			t.Errorf("%v: %s", err, body)
		}
		for _, l := range b.Logs {
			if l.Project != "p" || l.Run != "go" || l.RunID != "00ff" || l.Metrics["train/loss"] == nil {
				t.Errorf("logged %+v", l)
			}
			steps[l.LogID] = l.Step
		}
		alerts += len(b.Alerts)
		if r.URL.Path == "/api/bulk_alert" && len(b.Alerts) == 0 || r.URL.Path == "/api/bulk_log" && len(b.Logs) == 0 {
			t.Errorf("%s: %s", r.URL.Path, body)
		}
	}))
	defer server.Close()
	o, said := options(t, config.Log{Sinks: config.Sinks{config.Trackio}, TrackioURL: server.URL + "/", Every: 2})
	s := open(t, o)
	for n := range 1000 {
		x := stepOf(n + 1)
		if n == 500 {
			x.Loss = math.Inf(1)
		}
		s.Step(x)
	}
	s.Alert(Alert{Kind: "ended"})
	s.Close()
	if len(steps) != 500 || alerts != 1 || said() != "" {
		t.Errorf("%d steps, %d alerts; said %q", len(steps), alerts, said())
	}
}

// A batch that the server will never take is dropped, with one warning, and the next ones arrive.
func TestTrackioGoesOnAfterARefusal(t *testing.T) {
	var mu sync.Mutex
	calls, taken := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 1 {
			http.Error(w, "too much", http.StatusRequestEntityTooLarge)
			return
		}
		taken++
	}))
	defer server.Close()
	o, said := options(t, config.Log{Sinks: config.Sinks{config.Trackio}, TrackioURL: server.URL, Every: 1})
	s := open(t, o)
	for n := range 3 * trackioBatch {
		s.Step(stepOf(n + 1))
	}
	s.Close()
	if text := said(); calls != taken+1 || taken < 2 || strings.Count(text, "413") != 1 ||
		!strings.Contains(text, "dropped 1 of the messages") {
		t.Errorf("%d calls, %d taken; said %q", calls, taken, text)
	}
}

func scrape(t *testing.T, said string) string {
	t.Helper()
	_, url, _ := strings.Cut(said, "metrics are at ")
	r, err := http.Get(strings.TrimSpace(url))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("%s: %v", r.Status, err)
	}
	return string(text)
}

// A flood of connections keeps no scraper out, and takes no more than the connections that there may be.
func TestFloodsAreBounded(t *testing.T) {
	o, said := options(t, config.Log{Sinks: config.Sinks{config.Prometheus}, PrometheusListen: "127.0.0.1:0"})
	s := open(t, o)
	defer s.Close()
	_, url, _ := strings.Cut(said(), "http://")
	address, path, _ := strings.Cut(strings.TrimSpace(url), "/")
	guardtest.Survives(t, address, "/"+path, scrapeConnections)
}

// The time of steps counts on if the process has taken the run back, except of the steps that this undid.
func TestGoodputSurvivesARewind(t *testing.T) {
	o, _ := options(t, config.Log{Sinks: config.Sinks{config.Prometheus}, PrometheusListen: "127.0.0.1:0"})
	o.Kept, o.Begun = &Kept{}, time.Now().Add(-time.Hour)
	for _, c := range []struct {
		from, to int
		want     string
	}{{1, 4, "0.39"}, {3, 4, "0.39"}, {1, 1, "0.09"}} { // steps of 6 minutes
		o.Step = c.from - 1
		again, said := options(t, o.Log)
		o.Warn = again.Warn
		s := open(t, o)
		for n := c.from; n <= c.to; n++ {
			x := stepOf(n)
			x.Skipped, x.Took, x.Phases = false, 6*time.Minute, [train.Phases]time.Duration{}
			s.Step(x)
		}
		if text := scrape(t, said()); !strings.Contains(text, "anneal_goodput_ratio "+c.want) {
			t.Errorf("after the steps %d to %d the goodput is not %s:\n%s", c.from, c.to, c.want, text)
		}
		s.Close()
	}
}

func TestPrometheusScrapes(t *testing.T) {
	o, said := options(t, config.Log{Sinks: config.Sinks{config.Prometheus}, PrometheusListen: "127.0.0.1:0"})
	o.Step, o.Tokens, o.Name = 2, 200, "go\xff"
	o.Restarts, o.Reached, o.Checkpoint, o.Begun = 3, 3, 4096, time.Now().Add(-time.Hour)
	s := open(t, o)
	defer s.Close()
	before := scrape(t, said())
	for _, name := range []string{"anneal_train_loss", "anneal_eta_seconds", "anneal_checkpoint_last_success"} {
		if strings.Contains(before, name) || !strings.Contains(before, "anneal_step 2") {
			t.Errorf("before the first step the page has %s, or not the step:\n%s", name, before)
		}
	}
	for n := 3; n < 6; n++ {
		x := stepOf(n)
		x.Skipped, x.LossScale = n == 4, 0
		x.Took, x.Phases[train.Reading] = 20*time.Minute, 2*time.Minute // only those of step 5 count
		x.ValLoss, x.ValBitsPerByte = 2.5, 1.25
		x.ValSources = []train.SourceResult{{Name: "all", Loss: 9}, {Name: "\xff", Loss: 8}}
		s.Step(x)
	}
	s.Saved(nil)
	s.Saved(io.ErrShortWrite)
	text := scrape(t, said())
	for _, line := range []string{
		"anneal_step 5", "anneal_tokens_total 300", "anneal_train_loss 2.995", `anneal_val_loss{set="all"} 2.5`,
		`anneal_memory_bytes{kind="activations"} 42`, `anneal_skipped_steps_total{reason="spike"} 1`,
		`anneal_skipped_steps_total{reason="nan"} 0`, "anneal_step_duration_seconds_count 3",
		`anneal_phase_seconds_total{phase="reading"} 360`, "anneal_checkpoints_total 1",
		"anneal_checkpoint_failures_total 1", "anneal_restarts_total 3", "anneal_checkpoint_bytes 4096",
		"anneal_goodput_ratio 0.29", "run=\"go\uFFFD\"", "process_resident_memory_bytes",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	if strings.Contains(text, "anneal_resident_memory_bytes") {
		t.Errorf("the page has a resident memory, which no step told:\n%s", text)
	}
	_, taken, _ := strings.Cut(said(), "http://")
	r, err := http.NewRequest("GET", "http://"+strings.TrimSpace(taken), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	if answer, err := http.DefaultClient.Do(r); err != nil || answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a request for another name: %v, %v", answer, err)
	} else {
		answer.Body.Close()
	}
	// A second run on the same port says which key to change.
	o.Log.PrometheusListen = strings.TrimSuffix(strings.TrimSpace(taken), "/metrics")
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "log.prometheus_listen") {
		t.Errorf("a port in use: %v", err)
	}
}

// An evaluation that an earlier process was stopped in adds its figures, but neither a step nor tokens.
func TestALateEvaluationIsNoStep(t *testing.T) {
	o, said := options(t, config.Log{Sinks: config.Sinks{config.Prometheus}, PrometheusListen: "127.0.0.1:0"})
	o.Step, o.Tokens = 2, 200
	s := open(t, o)
	defer s.Close()
	e := train.NewEvent().Evaluation
	e.ValLoss, e.ValBitsPerByte = 2.5, 1.25
	s.Evaluated(2, e)
	text := scrape(t, said())
	for _, line := range []string{
		"anneal_step 2", "anneal_tokens_total 0", "anneal_step_duration_seconds_count 0",
		`anneal_val_loss{set="all"} 2.5`, `anneal_val_bits_per_byte{set="all"} 1.25`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	if strings.Contains(text, "anneal_train_loss") {
		t.Errorf("the page has the loss of a step:\n%s", text)
	}
	for _, v := range evaluation(e) {
		if !strings.HasPrefix(v.tag, "val/") {
			t.Errorf("TensorBoard and trackio get %s again", v.tag)
		}
	}
}

// Each process of a run has its own file, which begins where the process does.
func TestTensorBoardFiles(t *testing.T) {
	o, said := options(t, config.Log{Sinks: config.Sinks{config.TensorBoard}})
	for process := range 2 {
		o.Step = 3 * process
		s := open(t, o)
		for n := range 5 {
			s.Step(stepOf(o.Step + n + 1))
		}
		s.Wrote(o.Step+5, []Text{{"func", " main() {\n\t```"}})
		s.Close()
	}
	files, err := filepath.Glob(filepath.Join(o.Dir, "tensorboard", "events.out.tfevents.*"))
	if err != nil || len(files) != 2 || said() != "" {
		t.Fatalf("files %q, %v; said %q", files, err, said())
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "train/loss") ||
			!strings.Contains(string(text), "brain.Event:2") || !strings.Contains(string(text), "samples/0") ||
			!strings.Contains(string(text), "    func main() {\n    \t```\n") {
			t.Errorf("%s: %v, %d bytes", path, err, len(text))
		}
	}
}

// A disk that refuses every write is told once, not at every step, and the run goes on.
func TestWritersThatFailAreToldOnce(t *testing.T) {
	o, said := options(t, config.Log{Sinks: config.Sinks{config.TensorBoard}})
	s := open(t, o)
	s.list[0].(*tensorBoard).file.Close()
	for n := range 100 {
		s.Step(stepOf(n + 1))
	}
	s.Close()
	if n := strings.Count(said(), "does not take"); n != 1 {
		t.Errorf("told %d times: %s", n, said())
	}
}

// A writer that is slow, and cannot be stopped within a piece, holds the end of a run for one patience, not for one
// each piece.
func TestTheEndWaitsForAllPiecesTogether(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = 200 * time.Millisecond
	o, said := options(t, config.Log{})
	box := newOutbox("slow", 1000, time.Second, o.Warn, func(_ context.Context, p []byte) (int, error) {
		time.Sleep(50 * time.Millisecond)
		return len(p), nil
	})
	for range 200 {
		box.put([]byte("x"))
	}
	start := time.Now()
	if ended := box.close(); !ended || time.Since(start) > 5*time.Second || !strings.Contains(said(), "dropped") {
		t.Errorf("ended %v after %v: %s", ended, time.Since(start), said())
	}
}

func TestReasonsOfSkips(t *testing.T) {
	for _, c := range []struct {
		loss, norm, scale float64
		targets           int
		want              string
	}{
		{1, 1, 0, 1, "spike"}, {math.NaN(), 1, 0, 1, "nan"}, {1, math.Inf(1), 0, 1, "nan"},
		{1, math.Inf(1), 1024, 1, "overflow"}, {math.NaN(), math.NaN(), 1024, 1, "nan"},
		{math.NaN(), math.NaN(), 0, 0, "empty"},
	} {
		e := train.NewEvent()
		e.Skipped, e.Loss, e.GradNorm, e.LossScale, e.Targets = true, c.loss, c.norm, c.scale, c.targets
		if got := skipKind(e); got != c.want {
			t.Errorf("%s: %q, want %q", fmt.Sprint(c), got, c.want)
		}
	}
}
