package run

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anneal/train"
)

// A resume removes lines that a kill or a full disk left after the checkpoint's step.
func TestMetricsAreTrimmedToTheCheckpoint(t *testing.T) {
	const one, two, three = `{"step":1,"loss":2}` + "\n", `{"step":2,"loss":null}` + "\n", `{"step":3,"loss":1}` + "\n"
	for _, c := range []struct {
		name, before string
		step         int
		after        string
	}{
		{"no file", "", 5, ""},
		{"nothing to cut", one + two + three, 3, one + two + three},
		{"later steps", one + two + three, 1, one},
		{"from the start", one + two + three, 0, ""},
		{"torn last line", one + two + `{"step":3,"lo`, 3, one + two},
		{"whole last line without its end", one + two + `{"step":3,"loss":1}`, 3, one + two},
		{"zeros of a lost block", one + strings.Repeat("\x00", 4096), 3, one},
		{"a line longer than any", one + strings.Repeat("x", 2<<20), 3, one},
	} {
		path := filepath.Join(t.TempDir(), "metrics.jsonl")
		if c.name != "no file" {
			if err := os.WriteFile(path, []byte(c.before), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		m, err := openMetrics(path, c.step, func(s string) {
			// but that step 3 is missing, which it is
			if !strings.HasSuffix(s, " 3") || strings.Contains(s, "unreadable") {
				t.Errorf("%s: %s", c.name, s)
			}
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		m.write(train.Event{Step: 9})
		m.close()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(train.Event{Step: 9})
		if err != nil {
			t.Fatal(err)
		}
		if want := c.after + string(line) + "\n"; string(data) != want {
			t.Errorf("%s: the file holds %.200q, want %.200q", c.name, data, want)
		}
	}
}

// The clock counts the time between ticks, forgets what is older than its window, and leaves pauses out.
func TestClockMeasuresTrainingTime(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 0.01*want) {
			t.Errorf("%s: %v tokens per second, want %v", what, got, want)
		}
	}
	var c clock
	tokens := int64(5000) // a resumed run has seen tokens before
	c.start(tokens)
	if !math.IsNaN(c.rate()) || !math.IsNaN(c.average()) {
		t.Errorf("before the first tick the rates are %v and %v, want NaN", c.rate(), c.average())
	}
	pass := func(d time.Duration, n int64) {
		c.since = c.since.Add(-d) // as if d had passed
		tokens += n
		c.tick(tokens, 3*float64(n))
	}
	for range 10 {
		pass(2*time.Second, 200)
	}
	near("steady rate", c.rate(), 100)
	c.since = c.since.Add(-time.Hour)
	c.pause()
	pass(2*time.Second, 200)
	near("rate after a pause", c.rate(), 100)
	for range 6 {
		pass(2*time.Second, 800)
	}
	near("rate of the last seconds", c.rate(), 400)
	near("operations of the last seconds", c.flops(), 1200)
	near("average", c.average(), float64(11*200+6*800)/(17*2))
	if n := len(c.marks); n > 8 {
		t.Errorf("%d marks kept for a window of %v", n, rateWindow)
	}
	for range 100 {
		pass(time.Minute, 600)
	}
	near("steps longer than the window", c.rate(), 10)
	if len(c.marks) > 8 {
		t.Error(fmt.Sprint("marks pile up: ", len(c.marks)))
	}
}

// A line that cannot be read costs that line: the run keeps all others, whoever reads them too, and its number and the
// steps that are missing are told.
func TestAnUnreadableLineCostsOnlyItself(t *testing.T) {
	line := func(step int) string { return fmt.Sprintf(`{"step":%d,"tokens":%d,"loss":2}`+"\n", step, 10*step) }
	rewound := `{"step":9,"rewound":true}` + "\n"
	for _, c := range []struct {
		name, before, after, says string
		step                      int
	}{
		{"damaged", line(1) + "{\"st\x00p\":2}\n" + line(3), line(1) + line(3),
			"unreadable lines are left out: 2; the metrics of these are missing: step 2", 3},
		{"no step", line(1) + "null\n" + line(2), line(1) + line(2), "unreadable lines are left out: 2", 2},
		{"too long", line(1) + strings.Repeat("x", 3<<20) + "\n" + line(3), line(1) + line(3),
			"left out: 2; the metrics of these are missing: step 2", 3},
		{"a hole", line(1) + line(5) + line(6), line(1) + line(5) + line(6), "are missing: steps 2 to 4", 6},
		{"an end that was lost", line(4) + line(5), line(4) + line(5), "are missing: steps 6 to 8", 8},
		{"later lines between others", line(1) + line(7) + rewound + line(2), line(1) + rewound + line(2), "", 2},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "metrics.jsonl")
		if err := os.WriteFile(path, []byte(c.before), 0o666); err != nil {
			t.Fatal(err)
		}
		var curve, run said
		if c.says != "" && c.name != "an end that was lost" {
			losses, err := Losses(dir, curve.warn)
			if want := strings.Count(c.after, `"loss"`); err != nil || len(losses.Loss) != want ||
				!strings.Contains(curve.all(), c.says) {
				t.Errorf("%s: %d losses, want %d, %v; it says %q", c.name, len(losses.Loss), want, err, curve.all())
			}
		}
		for range 2 {
			m, err := openMetrics(path, c.step, run.warn)
			if err != nil {
				t.Fatal(err)
			}
			m.close()
		}
		text, err := os.ReadFile(path)
		if err != nil || string(text) != c.after {
			t.Errorf("%s: %v, the file holds %.300q, want %q", c.name, err, text, c.after)
		}
		if !strings.Contains(run.all(), c.says) || c.says == "" && run.all() != "" {
			t.Errorf("%s: it says %q, want %q", c.name, run.all(), c.says)
		}
	}
}

// A rewind keeps what stands behind a line that cannot be read.
func TestARewindDropsOnlyUnreadableLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	if err := os.WriteFile(path, []byte("{\"step\":1}\nx\n{\"step\":2}\n{\"step\":3,\"rewound\":true}\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	c, err := markRewound(path, 1)
	text, _ := os.ReadFile(path)
	if want := "{\"step\":1}\n{\"step\":2,\"rewound\":true}\n{\"step\":3,\"rewound\":true}\n"; err != nil ||
		string(text) != want {
		t.Errorf("%v, the file holds %q, want %q", err, text, want)
	}
	if says := c.faults("m"); says != "m: unreadable lines are left out: 2" {
		t.Errorf("it says %q", says)
	}
}
