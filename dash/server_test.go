package dash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anneal/config"
	"anneal/internal/webguard/guardtest"
	"anneal/run"
)

// newRun makes the directory of a run with some metrics, as training leaves it.
func newRun(t testing.TB, name, metrics string, overrides ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "model: {layers: 2, dim: 64, heads: 2, context: 64, vocab: 256}\n" +
		"train: {steps: 1000, batch_tokens: 1024}\noptimizer: {lr: 1e-3}\ndata: {path: /data}\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, overrides)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(dir, "config.yaml"): string(cfg.YAML()), run.MetricsFile(dir): metrics,
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newWatch(t testing.TB, dirs ...string) *Watch {
	t.Helper()
	w, err := New(dirs)
	if err != nil {
		t.Fatal(err)
	}
	w.Read()
	return w
}

// The server answers readers on this machine, and nobody else, and nothing but reading.
func TestWhoMayReadWhat(t *testing.T) {
	w := newWatch(t, newRun(t, "a", lines(1, 20)))
	open := (&Server{Watch: w, Hosts: []string{"box"}}).Handler()
	closed := (&Server{Watch: w, Token: "secret"}).Handler()
	for _, c := range []struct {
		server             http.Handler
		method, path, host string
		authorization      string
		want               int
	}{
		{open, "GET", "/", "127.0.0.1:7070", "", 200},
		{open, "HEAD", "/page.js", "localhost:7070", "", 200},
		{open, "GET", "/page.css", "[::1]:7070", "", 200},
		{open, "GET", "/api/view", "box", "", 200},
		{open, "GET", "/api/view", "a.LOCALHOST.", "", 200},
		{open, "GET", "/api/curves/0", "localhost", "", 200},
		{open, "GET", "/api/part/0?from=1&to=9", "localhost", "", 200},
		{open, "GET", "/api/part/0?from=9&to=1", "localhost", "", 400},
		{open, "GET", "/api/curves/1", "localhost", "", 404},
		{open, "GET", "/api/curves/-1", "localhost", "", 404},
		{open, "GET", "/config.yaml", "localhost", "", 404},
		{open, "GET", "/../config.yaml", "localhost", "", 404},
		{open, "POST", "/api/view", "localhost", "", 405},
		{open, "DELETE", "/", "localhost", "", 405},
		{open, "GET", "/api/view", "evil.example", "", 421},
		{open, "GET", "/", "localhost.evil.example", "", 421},
		{open, "GET", "/", "", "", 421},
		{closed, "GET", "/", "10.0.0.7:7070", "", 200},
		{closed, "GET", "/api/view", "10.0.0.7:7070", "", 401},
		{closed, "GET", "/api/curves/0", "10.0.0.7:7070", "Bearer wrong", 401},
		{closed, "GET", "/api/view", "10.0.0.7:7070", "Bearer secret", 200},
	} {
		r := httptest.NewRequest(c.method, "http://x"+c.path, nil)
		r.Host = c.host
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		answer := httptest.NewRecorder()
		c.server.ServeHTTP(answer, r)
		if answer.Code != c.want && !(c.want == 404 && answer.Code/100 == 3) {
			t.Errorf("%s %s of %q: %d, want %d", c.method, c.path, c.host, answer.Code, c.want)
		}
		if policy := answer.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", c.path, policy)
		}
	}
}

// FuzzHandler asks for anything: the server never fails, answers JSON where it answers, and changes no file.
func FuzzHandler(f *testing.F) {
	f.Add("GET", "/api/view", "localhost", "")
	f.Add("GET", "/api/curves/0?generation=1&width=1&from=10", "127.0.0.1", "x")
	f.Add("GET", "/api/part/0?from=0&to=99999999999", "[::1]:80", "Bearer a")
	f.Add("PUT", "/api/part/0?from=%zz", "[::1", "\x00")
	dir := newRun(f, "a", lines(1, 20))
	h := (&Server{Watch: newWatch(f, dir)}).Handler()
	f.Fuzz(func(t *testing.T, method, target, host, authorization string) {
		r, err := http.NewRequest(method, target, nil)
		if err != nil {
			return
		}
		r.Host, r.RequestURI = host, target
		r.Header.Set("Authorization", authorization)
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		if answer.Code >= 500 {
			t.Errorf("%s %q: %d %s", method, target, answer.Code, answer.Body)
		}
		if answer.Header().Get("Content-Type") == "application/json" && !json.Valid(answer.Body.Bytes()) {
			t.Errorf("%s %q: %s", method, target, answer.Body)
		}
		if names, _ := os.ReadDir(dir); len(names) != 2 {
			t.Errorf("%d files", len(names))
		}
	})
}

// What cannot be watched is one clear error.
func TestWhatIsNoRunIsRefused(t *testing.T) {
	newer := newRun(t, "newer", "")
	text, _ := os.ReadFile(filepath.Join(newer, "config.yaml"))
	write(t, filepath.Join(newer, "config.yaml"), strings.Replace(string(text), "seed:", "quantum: 1\nseed:", 1))
	for dir, want := range map[string]string{
		t.TempDir(): "is not a run", filepath.Join(t.TempDir(), "gone"): "is not a run", newer: "quantum",
	} {
		if _, err := New([]string{dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// A directory of runs stands for them, and each is told from the others.
func TestARunIsNamed(t *testing.T) {
	a := newRun(t, "same", lines(1, 5))
	b := newRun(t, "same", lines(1, 5), "optimizer.lr=0.01")
	v := newWatch(t, filepath.Dir(a), b, b).View(now)
	if len(v.Runs) != 2 || v.Runs[0].Name != a || v.Runs[1].Name != b {
		t.Errorf("%+v", v.Runs)
	}
	if d := v.Runs[1].Differences; len(d) != 1 || d[0].Key != "optimizer.lr" || d[0].Here != "0.01" {
		t.Errorf("%+v", d)
	}
}

// Of more runs than can be shown, those that changed last are watched, in the order in which they were named.
func TestTheNewestOfManyRunsAreWatched(t *testing.T) {
	parent, old := t.TempDir(), now.Add(-time.Hour)
	for i := range maxRuns + 2 {
		dir := filepath.Join(parent, fmt.Sprintf("%02d", i))
		if err := os.Rename(newRun(t, "run", lines(1, 2)), dir); err != nil {
			t.Fatal(err)
		}
		changed := now.Add(time.Duration(i) * time.Second)
		if i == 7 || i == 20 {
			changed = old
		}
		for _, name := range []string{"config.yaml", "metrics.jsonl"} {
			if err := os.Chtimes(filepath.Join(dir, name), changed, changed); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := newWatch(t, parent)
	var names []string
	for _, dir := range w.Dirs() {
		names = append(names, filepath.Base(dir))
	}
	if len(names) != maxRuns || w.Omitted() != 2 || !slices.IsSorted(names) || slices.Contains(names, "07") ||
		slices.Contains(names, "20") {
		t.Errorf("%d runs are watched, %d left out: %v", len(names), w.Omitted(), names)
	}
}

// Clients that never finish a request keep nobody else out for long.
func TestSlowClientsAreHungUpOn(t *testing.T) {
	address := strings.Trim(strings.TrimPrefix(serveRuns(t, newRun(t, "base", lines(1, 3))), "http://"), "/")
	guardtest.Outlasts(t, address, "/api/view", maxConnections, 15*time.Second)
}

// A flood of connections keeps nobody out, and takes no more than the connections that there may be.
func TestFloodsAreBounded(t *testing.T) {
	address := strings.Trim(strings.TrimPrefix(serveRuns(t, newRun(t, "base", lines(1, 3))), "http://"), "/")
	guardtest.Survives(t, address, "/api/view", maxConnections)
}
