package run

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"anneal/internal/filetest"
	"anneal/train"
	"anneal/train/traintest"
)

// FuzzState reads damaged states of a checkpoint: no panic, memory in proportion to the text, and a state that is
// possible is the same after it is written and read again.
func FuzzState(f *testing.F) {
	text, err := json.Marshal(state{
		Progress: train.Position{Step: 3, Tokens: 96, Updates: 2, Sample: 9}, Guard: train.Guard{Skipped: 1},
		Config: traintest.Config("data"), EvalStep: 2,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(filetest.Splice(bytes.Index(text, []byte(`"train_loss":`))+13, 1, "null"))
	f.Add(filetest.Splice(bytes.Index(text, []byte(`"config":`))+9, 1, `null,"x":{`))
	f.Fuzz(func(t *testing.T, edits []byte) {
		text := filetest.Edit(t, text, edits)
		var s, again state
		var err error
		if n := filetest.Allocated(func() { err = json.Unmarshal(text, &s) }); n > uint64(256<<10+100*len(text)) {
			t.Fatalf("%d bytes allocate %d", len(text), n)
		}
		if err != nil || s.Check(int64(s.Progress.Step), s.Progress.Tokens) != nil {
			return
		}
		once, err := json.Marshal(s)
		if err == nil {
			err = json.Unmarshal(once, &again)
		}
		if twice, _ := json.Marshal(again); err != nil || !bytes.Equal(once, twice) ||
			again.Check(int64(s.Progress.Step), s.Progress.Tokens) != nil {
			t.Fatalf("%s\nis written as %s\nand then as %s, %v", text, once, twice, err)
		}
	})
}

// FuzzRewind reads damaged plans of a rewind: one that is accepted goes to a step that can exist, and is the same
// after it is written and read again.
func FuzzRewind(f *testing.F) {
	f.Add([]byte(`{"step":20,"skip":"10:30,50:60"}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"step":-1,"skip":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parseRewind(text)
		if err != nil {
			return
		}
		written, _ := json.Marshal(p)
		if again, err := parseRewind(written); err != nil || again != p || p.Step < 0 ||
			!bytes.Contains(bytes.ToLower(text), []byte("step")) && !bytes.Contains(text, []byte(`\`)) {
			t.Fatalf("%s is read as %+v, written and read again as %+v, %v", text, p, again, err)
		}
	})
}

// FuzzMetrics damages metrics.jsonl. Trimming to a step and marking what comes after it as rewound leave no later step
// in the current history, change nothing the second time, and trimming only leaves lines out.
func FuzzMetrics(f *testing.F) {
	var text []byte
	for step := range 4 {
		line, _ := json.Marshal(train.Event{Step: step + 1, Loss: 2, Rewound: step == 1})
		text = append(append(text, line...), '\n')
	}
	f.Add([]byte{}, 2)
	f.Add(filetest.Splice(len(text)-9, 100, ""), 3)
	f.Add(filetest.Splice(0, 0, "null\n{}\n"), 0)
	path := filepath.Join(filetest.MemoryDir(f), "metrics.jsonl")
	f.Fuzz(func(t *testing.T, edits []byte, step int) {
		text := filetest.Edit(t, text, edits)
		step = max(step, 0)
		twice := func(what string, f func(path string, step int) (*metricsCheck, error)) (result []byte) {
			for i := range 2 {
				if _, err := f(path, step); err != nil {
					t.Fatalf("%s to step %d: %v", what, step, err)
				}
				now, _ := os.ReadFile(path)
				if i == 1 && !bytes.Equal(now, result) {
					t.Fatalf("%s to step %d gives %q, and again %q", what, step, result, now)
				}
				result = now
			}
			return result
		}
		write := func() {
			if err := os.WriteFile(path, text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		write()
		trimmed := twice("trimming", trimMetrics)
		rest := text
		for line := range bytes.Lines(trimmed) {
			_, after, found := bytes.Cut(rest, line)
			if rest = after; !found {
				t.Fatalf("%q trimmed to step %d has the line %q", text, step, line)
			}
		}
		if len(trimmed) > len(text) {
			t.Fatalf("%q trimmed to step %d is %q", text, step, trimmed)
		}
		if last, err := lastLogged(path); last > step || err != nil {
			t.Fatalf("%q trimmed to step %d is at step %d, %v", text, step, last, err)
		}
		write()
		marked := twice("marking", markRewound)
		if last, err := lastLogged(path); last > step && len(marked) > 0 || err != nil {
			t.Fatalf("%q marked as rewound to step %d is %q and at step %d, %v", text, step, marked, last, err)
		}
	})
}
