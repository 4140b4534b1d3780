package dash

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"anneal/run"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A report holds everything: no address, no script but its own, and no text of a run that ends its element.
func TestAReportNeedsNothing(t *testing.T) {
	dir := newRun(t, "a", lines(1, 30)+`{"step":31,"loss":2,"</script><script>alert(1)</script>":3}`+"\n")
	w := newWatch(t, dir)
	path := filepath.Join(t.TempDir(), "report.html")
	if err := w.WriteReport(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "unsafe") ||
		strings.Count(page, "<script") != 2 {
		t.Error("a text of the run is part of the page")
	}
	before, rest, _ := strings.Cut(page, `id="record">`)
	data, after, _ := strings.Cut(rest, "</script>")
	loads := regexp.MustCompile(`(src|href)="(?:[^d]|d[^a])|://`)
	if m := loads.FindString(before + after); m != "" {
		t.Errorf("the page loads something: %q", m)
	}
	var r struct {
		View   View
		Curves []struct{ X map[string][]float64 }
	}
	if err := json.Unmarshal([]byte(data), &r); err != nil || len(r.Curves) != 1 || len(r.Curves[0].X["step"]) != 31 {
		t.Errorf("%v: %d curves", err, len(r.Curves))
	}
}

// A run that rewound itself after a divergence went on: only the rewind is told, until the run is started again.
func TestAlertsOfARunThatWentOn(t *testing.T) {
	var lines []run.JournalLine
	for _, c := range []struct{ event, want string }{
		{"started", ""}, {"warning", "warning"}, {"diverged", "warning diverged"},
		{"rewound", "warning diverged rewound"}, {"continued", "warning rewound"},
		{"diverged", "warning rewound diverged"}, {"started", ""},
	} {
		lines = append(lines, run.JournalLine{Event: c.event})
		var got []string
		for _, a := range journalAlerts(lines) {
			got = append(got, a.Kind)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("after %q: alerts %q, want %q", c.event, got, c.want)
		}
	}
}

// What a person should know is told: losses that are not finite, spikes, a slower machine, lines that are lost.
func TestAlerts(t *testing.T) {
	text := lines(1, 400)
	if list := newWatch(t, newRun(t, "quiet", text)).View(now).Runs[0].Alerts; len(list) != 0 {
		t.Errorf("of a quiet run: %+v", list)
	}
	empty := `{"step":401,"loss":null,"grad_norm":null,"lr":0,"skipped":true}` + "\n" // without targets
	if list := newWatch(t, newRun(t, "empty", text+empty)).View(now).Runs[0].Alerts; len(list) != 0 {
		t.Errorf("of a step without targets: %+v", list)
	}
	text += `{"step":401,"loss":null,"lr":0.1,"skipped":true}` + "\n" + `{"step":402,"loss":9}` + "\nbroken\n"
	for step := 403; step < 450; step++ {
		text += fmt.Sprintf(`{"step":%d,"loss":4.1,"tokens_per_second":10000}`+"\n", step)
	}
	var kinds []string
	for _, a := range newWatch(t, newRun(t, "loud", text)).View(now).Runs[0].Alerts {
		kinds = append(kinds, a.Kind)
	}
	if got := strings.Join(kinds, " "); got != "nan spike slow lines" {
		t.Errorf("alerts: %s", got)
	}
}

// A stalled run and a full disk are told of while a run trains.
func TestAStallIsTold(t *testing.T) {
	w := newWatch(t, newRun(t, "a", lines(1, 100)))
	r := w.runs[0]
	r.facts.summary.State = run.Running
	v := r.view(r.points.changed.Add(59 * time.Second))
	if len(v.Alerts) != 0 || v.ETASeconds < 80 || v.ETASeconds > 100 {
		t.Errorf("%+v, ETA %v s", v.Alerts, v.ETASeconds)
	}
	if v = r.view(r.points.changed.Add(61 * time.Second)); len(v.Alerts) != 1 || v.Alerts[0].Kind != "stall" {
		t.Errorf("%+v", v.Alerts)
	}
}

// A terminal of 80 × 24 characters is filled and not more, whatever is shown.
func TestATerminalIsFilled(t *testing.T) {
	a, b := newRun(t, "first", lines(1, 3000)), newRun(t, "second", lines(1, 700), "optimizer.lr=0.01")
	for _, dirs := range [][]string{{a}, {a, b}, {newRun(t, "empty", "")}} {
		w := newWatch(t, dirs...)
		for _, o := range []Screen{
			{Columns: 80, Rows: 24}, {Columns: 80, Rows: 24, Log: true, Axis: ByTime, Run: 1},
			{Columns: 20, Rows: 5}, {Columns: 20, Rows: 1}, {Columns: 200, Rows: 60, Axis: ByTokens},
		} {
			drawn := w.Draw(o, now)
			if len(drawn) > o.Rows {
				t.Errorf("%v: %d lines", o, len(drawn))
			}
			for _, l := range drawn {
				if n := len([]rune(l)); n > o.Columns {
					t.Errorf("%v: %d columns: %s", o, n, l)
				}
			}
			text := strings.Join(drawn, "\n")
			if o.Columns >= 80 && (!strings.Contains(text, "loss (nats per token)") ||
				!strings.Contains(text, "q quit")) {
				t.Errorf("%v:\n%s", o, text)
			}
		}
	}
}

// Letters that are two columns wide count as two.
func TestWideLettersFitATerminal(t *testing.T) {
	for _, c := range []struct {
		line    string
		columns int
		want    string
	}{{"abc", 2, "ab"}, {"日本語", 5, "日本"}, {"日本語", 6, "日本語"}, {"a日é", 3, "a日"}, {"Ａｱ🙂░", 3, "Ａｱ"}, {"", 3, ""}} {
		if got := cut(c.line, c.columns); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.line, c.columns, got, c.want)
		}
	}
}

// A report is passed on: it has no secret of a run's config.
func TestAReportHoldsNoSecret(t *testing.T) {
	w := newWatch(t, newRun(t, "a", lines(1, 3)), newRun(t, "b", lines(1, 3),
		"log.sinks=trackio", "log.webhook=https://hooks.example.com/hush",
		"log.trackio_url=http://127.0.0.1:7860?write_token=hush"))
	text, err := w.report(now)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "hush") || !strings.Contains(text, "log.webhook") {
		t.Error("a secret is in the report, or that it is set is not")
	}
}

// A terminal that says that it has no size gets a usual one, and no text of a run controls a terminal.
func TestATerminalIsNotControlled(t *testing.T) {
	dir := newRun(t, "a\x1b]0;b", lines(1, 30))
	write(t, filepath.Join(dir, "journal.jsonl"), `{"event":"warning","step":3,"text":"\u001b[2Jgone\u009b"}`+"\n")
	text := strings.Join(newWatch(t, dir).Draw(Screen{}, now), "\n")
	if strings.ContainsAny(text, "\x1b\u009b\r") || !strings.Contains(text, "[2Jgone") {
		t.Errorf("%q", text)
	}
}

// A run that is resumed with another config is shown with it, and with how it was started a while ago.
func TestWhatChangesIsReadAgain(t *testing.T) {
	dir := newRun(t, "a", lines(1, 30))
	journal := `{"event":"warning","step":1,"text":"old"}` + "\n" + `{"event":"started","step":1}` + "\n" +
		strings.Repeat(`{"event":"saved","step":2}`+"\n", 100)
	write(t, filepath.Join(dir, "journal.jsonl"), journal+`{"event":"warning","step":3,"text":"new"}`+"\n")
	w := newWatch(t, dir)
	path := filepath.Join(dir, "config.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	longer := strings.Replace(string(text), "steps: 1000", "steps: 2000", 1)
	if err := os.WriteFile(path, []byte(longer), 0o666); err != nil {
		t.Fatal(err)
	}
	w.runs[0].refresh(time.Now().Add(time.Minute))
	v := w.View(now).Runs[0]
	if v.Steps != 2000 || len(v.Journal) != journalLines || len(v.Alerts) != 1 || v.Alerts[0].Text != "new" {
		t.Errorf("%d steps, %d lines, %+v", v.Steps, len(v.Journal), v.Alerts)
	}
}

// A terminal says which layers are moved most and grow largest, where the memory goes, and what the model writes, on
// one line each, beside the chart.
func TestATerminalSaysWhatGoesOnInside(t *testing.T) {
	text := lines(1, 3000)
	text += `{"step":3001,"loss":2,"clip_rate_recent":0.25,"update_ratios":{"layers":[0.001,0.5,0.002]}}` + "\n"
	text += `{"step":3003,"loss":2,"update_ratios":{"layers":[0.001,0.0042,0.002]},` +
		`"activation_rms":[0.2,3,25.5,4]}` + "\n"
	dir := newRun(t, "first", text)
	write(t, filepath.Join(dir, "timing.json"), `{"steps":0,"memory":[{"name":"scratch","predicted":1048576},`+
		`{"name":"activations","predicted":33554432},{"name":"gradients","predicted":9437184}]}`)
	if err := os.Mkdir(filepath.Join(dir, "samples"), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "samples", "step-00003000.json"),
		`{"step":3000,"texts":[{"prompt":"func main","text":"() {\n\u001b[2Jmore"}]}`)
	w := newWatch(t, dir)
	drawn := w.Draw(Screen{Columns: 80, Rows: 24}, now)
	screen := strings.Join(drawn, "\n")
	for _, want := range []string{
		"update/weight 0.0042 layer 1   activation 25.5 layer 1   25 % clipped\n",
		"memory: activations 32 MiB  gradients 9.0 MiB  scratch 1.0 MiB",
		"sample at 3000: func main() {\n", "loss (nats per token)", "q quit",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	for _, o := range []Screen{{Columns: 80, Rows: 24}, {Columns: 40, Rows: 24}, {Columns: 12, Rows: 6}} {
		drawn := w.Draw(o, now)
		for _, l := range drawn {
			if len([]rune(l)) > o.Columns || strings.ContainsRune(l, 0x1b) {
				t.Errorf("%v: %q", o, l)
			}
		}
		if len(drawn) > o.Rows {
			t.Errorf("%v: %d lines", o, len(drawn))
		}
	}
	if few := strings.Join(w.Draw(Screen{Columns: 40, Rows: 24}, now), "\n"); !strings.Contains(few,
		"memory: activations 32 MiB \n") {
		t.Errorf("memory in 40 columns:\n%s", few)
	}
}
