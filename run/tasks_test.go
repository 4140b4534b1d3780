package run

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"anneal/train"
	"anneal/train/traintest"
)

const taskText = `task: next
dataset_path: json
dataset_kwargs: {data_files: {test: items.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: a
doc_to_choice: [b, c d]
doc_to_target: right
`

// taskDir is a directory with a task; more is added to its file.
func taskDir(t *testing.T, more string) string {
	dir := t.TempDir()
	items := strings.Repeat("{\"a\": \"func\", \"right\": 0}\n{\"a\": \"if x\", \"right\": 1}\n"+
		"{\"a\": \"QUESTION #7 (A-Z) WXYZ?\", \"right\": 1}\n", 15) // several batches; choices share the last
	for name, text := range map[string]string{"x.yaml": taskText + more, "items.jsonl": items} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// figuresOf returns the figures of tasks by step.
func figuresOf(t *testing.T, dir string) map[int]map[string]map[string]train.Number {
	figures := map[int]map[string]map[string]train.Number{}
	err := runMetrics(dir, func(w string) { t.Error(w) }, func(e train.Event) {
		if e.Tasks != nil {
			figures[e.Step] = e.Tasks
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return figures
}

// A run that is stopped and resumed gives the same figures of tasks, at the same steps, as one that is not, on one
// rank and on two; and they change no weight.
func TestRunsAskTasksTheSameWhateverHappens(t *testing.T) {
	data, tasks := traintest.Data(t), taskDir(t, "")
	start := func(dir string, stop int, overrides ...string) *Result {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		r, err := Run(ctx, Options{
			Config: smallConfig(t, data, append(overrides, "precision=fp32", "train.steps=5")...), Dir: dir,
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
	asked := []string{"eval.tasks=" + tasks, "eval.tasks_every=2"}
	whole, parts, ranks, none := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b"),
		filepath.Join(t.TempDir(), "c"), filepath.Join(t.TempDir(), "d")
	first := start(whole, 0, asked...)
	start(parts, 3, asked...)
	if _, err := Resume(context.Background(), Options{Dir: parts}); err != nil {
		t.Fatal(err)
	}
	start(ranks, 0, append(asked, "parallel.ranks=2", "parallel.zero=3")...)
	want := figuresOf(t, whole)
	if len(want) != 3 || want[2] == nil || want[4] == nil || want[5] == nil || len(want[5]["next"]) != 2 {
		t.Fatalf("figures %v", want)
	}
	for _, dir := range []string{parts, ranks} {
		if got := figuresOf(t, dir); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if r := start(none, 0); r.WeightsHash != first.WeightsHash {
		t.Error("asking changed the weights")
	}
}

// Items to which no answer is right are warned of, once, as anneal eval does.
func TestItemsWithoutARightAnswerAreWarnedOf(t *testing.T) {
	data, dir := traintest.Data(t), taskDir(t, "")
	items := filepath.Join(dir, "items.jsonl")
	text, err := os.ReadFile(items)
	if err == nil {
		err = os.WriteFile(items, []byte(strings.ReplaceAll(string(text), `"right": 1`, `"right": 7`)), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	cfg := smallConfig(t, data, "eval.tasks="+dir, "eval.tasks_every=1", "train.steps=3")
	_, err = Run(context.Background(), Options{
		Config: cfg, Dir: filepath.Join(t.TempDir(), "run"), Warn: func(text string) { warned = append(warned, text) },
	})
	if all := strings.Join(warned, "\n"); err != nil || strings.Count(all, "none of their choices") != 1 {
		t.Errorf("%v, warned of\n%s", err, all)
	}
}

func TestTasksThatARunCannotAskAreRefusedBeforeItBegins(t *testing.T) {
	data := traintest.Data(t)
	for _, c := range []struct{ dir, key, says string }{
		{taskDir(t, "unknown: 1\n"), "eval.tasks_every=1", "unknown key unknown"},
		{taskDir(t, "filter_list: []\n"), "eval.tasks_every=1", "no use of filter_list"},
		{taskDir(t, ""), "parallel.tensor=2", "eval.tasks does not work with parallel.tensor"},
		{filepath.Join(t.TempDir(), "nothing"), "eval.tasks_every=1", "nothing"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		cfg := smallConfig(t, data, "eval.tasks="+c.dir)
		err := cfg.Override(c.key)
		if err == nil {
			_, err = Run(context.Background(), Options{Config: cfg, Dir: dir})
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.says, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the run has begun", c.says)
		}
	}
}

// A resume does without tasks that have moved, on any number of ranks, and says so.
func TestAResumeDoesWithoutItsTasks(t *testing.T) {
	data := traintest.Data(t)
	for _, ranks := range []string{"parallel.ranks=1", "parallel.ranks=2"} {
		path, dir := taskDir(t, ""), filepath.Join(t.TempDir(), "run")
		cfg := smallConfig(t, data, "train.steps=2", "schedule.warmup=1", "eval.tasks="+path, ranks)
		mustRun(t, Options{Config: cfg, Dir: dir, Threads: 2})
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		edit(t, dir, "train.steps=4")
		var s said
		r, err := Resume(context.Background(), Options{Dir: dir, Threads: 2, Warn: s.warn})
		if err != nil || r.Step != 4 || strings.Count(s.all(), "the model is not asked") != 1 {
			t.Errorf("%s: %+v, %v; it said %s", ranks, r, err, s.all())
		}
	}
}
