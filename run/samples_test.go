package run

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anneal/config"
	"anneal/train"
	"anneal/train/traintest"
)

func promptsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prompts.txt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// What the model writes is the same after a stop, a rewind of the files and on several ranks, and changes no weight.
func TestARunKeepsWhatItsModelWrites(t *testing.T) {
	data := traintest.Data(t)
	asked := []string{"samples.every=2", "samples.tokens=7",
		"samples.prompts=" + promptsFile(t, "the sum of 3 and\r\n\nthe sum of 4\n")}
	start := func(dir string, stop int, more ...string) *Result {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		r, err := Run(ctx, Options{
			Dir: dir, Config: smallConfig(t, data, append(more, "train.steps=5", "checkpoint.every=3")...),
			OnProgress: func(e train.Event) {
				if e.Step == stop {
					cancel()
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	whole, parts := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	ranks := filepath.Join(t.TempDir(), "c")
	first := start(whole, 0, asked...)
	start(parts, 3, asked...)
	late := filepath.Join(runDir(parts).samples(), "step-00000004.json")
	if err := os.WriteFile(late, []byte("of a step that is made again"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ReadSamples(parts, 9); len(got) != 1 || got[0].Step != 2 {
		t.Errorf("samples of a run that stopped: %+v", got)
	}
	if _, err := Resume(context.Background(), Options{Dir: parts}); err != nil {
		t.Fatal(err)
	}
	start(ranks, 0, append(asked, "parallel.ranks=2", "parallel.zero=3")...)
	if v, err := Verify(whole); err != nil || len(v.Remarks) > 0 {
		t.Errorf("verification says %+v: %v", v, err)
	}
	want := ReadSamples(whole, 9)
	if len(want) != 3 || want[2].Step != 5 || len(want[0].Texts) != 2 ||
		want[0].Texts[0].Prompt != "the sum of 3 and" || want[0].Texts[1].Text == "" {
		t.Fatalf("samples %+v", want)
	}
	for _, dir := range []string{parts, ranks} {
		if got := ReadSamples(dir, 9); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if r := start(filepath.Join(t.TempDir(), "d"), 0); r.WeightsHash != first.WeightsHash {
		t.Error("writing changed the weights")
	}
	if few := ReadSamples(whole, 2); len(few) != 2 || few[0].Step != 2 || few[1].Step != 5 {
		t.Errorf("two of three: %+v", few)
	}
	for step, dir := range map[int]string{4: whole, 0: ranks} {
		if err := runDir(dir).forgetSamples(step); err != nil {
			t.Fatal(err)
		}
		for _, s := range ReadSamples(dir, 9) {
			if s.Step > step {
				t.Errorf("the samples of step %d remain in a run that goes on at %d", s.Step, step)
			}
		}
	}
}

func TestPromptsThatCannotBeAreRefusedBeforeTheRunBegins(t *testing.T) {
	data := traintest.Data(t)
	for says, keys := range map[string][]string{
		"has 0 lines":           {"samples.prompts=" + promptsFile(t, "\n\n")},
		"has 65 lines":          {"samples.prompts=" + promptsFile(t, strings.Repeat("x\n", 65))},
		"nothing":               {"samples.prompts=" + filepath.Join(t.TempDir(), "nothing")},
		"does not work with":    {"parallel.tensor=2"},
		"outside":               {"samples.temperature=-1"},
		"samples.tokens = 0 is": {"samples.tokens=0"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		cfg := smallConfig(t, data, "samples.every=1")
		var err error
		for _, k := range keys {
			err = cfg.Override(k)
		}
		if err == nil {
			_, err = Run(context.Background(), Options{Config: cfg, Dir: dir})
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
		if problem, ok := err.(config.Problem); strings.HasPrefix(keys[0], "samples.prompts") &&
			(!ok || problem.Key != "samples.prompts" || problem.At == "" || problem.Try == "") {
			t.Errorf("%s: %+v has no key, place or remedy", says, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the run has begun", says)
		}
	}
}

// A resume whose prompts have gone warns and trains to the end without samples, on one rank and on two; with the file
// back, the next one writes them again.
func TestAResumeDoesWithoutPrompts(t *testing.T) {
	data := traintest.Data(t)
	for _, ranks := range []string{"1", "2"} {
		path, dir := promptsFile(t, "the sum of\n"), filepath.Join(t.TempDir(), "run")
		mustRun(t, Options{Dir: dir, Config: smallConfig(t, data, "samples.every=4", "samples.tokens=2",
			"samples.prompts="+path, "parallel.ranks="+ranks)})
		if err := os.Rename(path, path+".gone"); err != nil {
			t.Fatal(err)
		}
		var s said
		o := Options{Dir: dir, Overrides: []string{"train.steps=5"}, Warn: s.warn}
		if r, err := Resume(context.Background(), o); err != nil || r.Step != 5 {
			t.Fatalf("%s ranks: %+v, %v", ranks, r, err)
		}
		if text := s.all(); !strings.Contains(text, path) || !strings.Contains(text, "writes no samples") {
			t.Errorf("%s ranks: it says %q", ranks, text)
		}
		if err := os.Rename(path+".gone", path); err != nil {
			t.Fatal(err)
		}
		o.Overrides = []string{"train.steps=6"}
		if _, err := Resume(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		if got := runDir(dir).sampled(); !slices.Equal(got, []int{4, 6}) {
			t.Errorf("%s ranks: there are samples of steps %v, want 4 and 6", ranks, got)
		}
	}
}
