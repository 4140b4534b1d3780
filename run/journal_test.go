package run

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/train/traintest"
)

// readJournal returns the events of a run, each as "event" or "event: text".
func readJournal(t testing.TB, dir string) (events []string) {
	t.Helper()
	f, err := os.Open(runDir(dir).journal())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var l JournalLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil || l.Time.IsZero() {
			t.Fatalf("%v in %q", err, s.Bytes())
		}
		if l.Text != "" {
			l.Event += ": " + l.Text
		}
		events = append(events, l.Event)
	}
	return events
}

// The journal has the starts and ends of a run in their order, and what its caller noticed.
func TestTheJournalTellsWhatHappened(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps = 4
	cfg.Schedule.Warmup = 1
	asked := 0
	o := Options{Config: cfg, Dir: dir, Notes: func() []string {
		if asked++; asked == 2 {
			return []string{"nobody reads"}
		}
		return nil
	}}
	if r, err := Run(&countdown{context.Background(),
		3*cfg.Train.BatchTokens/(cfg.Train.MicroBatch*cfg.Model.Context) + 1}, o); err != nil || !r.Interrupted {
		t.Fatalf("%+v, %v", r, err)
	}
	resumeTo(t, dir)
	want := []string{"started", "note: nobody reads", "stopped", "started", "ended"}
	if got := readJournal(t, dir); !slices.Equal(got, want) {
		t.Errorf("the journal has %q, want %q", got, want)
	}
}

// A line that a full disk cut short spoils neither the next line nor what verify says of the run.
func TestALineCutShortIsRemovedFromTheJournal(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup = 2, 1
	mustRun(t, Options{Config: cfg, Dir: dir})
	text, err := os.ReadFile(runDir(dir).journal())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runDir(dir).journal(), append(text, `{"time":"20`...), 0o666); err != nil {
		t.Fatal(err)
	}
	resumeTo(t, dir)
	if got, want := readJournal(t, dir), []string{"started", "ended", "started", "ended"}; !slices.Equal(got, want) {
		t.Errorf("the journal has %q, want %q", got, want)
	}
	if _, err := Verify(dir); err != nil {
		t.Error(err)
	}
}

// A command that was killed has left no end in the journal; the next one notes that.
func TestTheJournalNotesAKill(t *testing.T) {
	dir := runDir(t.TempDir())
	for text, want := range map[string]past{
		"":                              {},
		"started":                       {starts: 1, killed: true},
		"started warning ended rewound": {starts: 1, afresh: true},
		"started stopped started note":  {starts: 2, killed: true, saved: true},
		"started failed":                {starts: 1},
	} {
		var lines []byte
		for event := range strings.FieldsSeq(text) {
			lines = fmt.Appendf(lines, "{\"event\":%q}\n", event)
		}
		if err := os.WriteFile(dir.journal(), append(lines, "{\"ev"...), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, err := dir.past(); got != want || err != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// A warning of any length hides no later line.
func TestTheJournalIsReadBeyondLongLines(t *testing.T) {
	dir := runDir(t.TempDir())
	var lines []byte
	for _, n := range []int{70 << 10, 2 * longestLine} {
		lines = fmt.Appendf(lines, "{\"event\":\"warning\",\"text\":%q}\n", strings.Repeat("x", n))
	}
	lines = append(lines, "{\"event\":\"started\"}\n{\"event\":\"ended\"}\n"...)
	if err := os.WriteFile(dir.journal(), lines, 0o666); err != nil {
		t.Fatal(err)
	}
	if got, err := dir.past(); got != (past{starts: 1, saved: true}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
