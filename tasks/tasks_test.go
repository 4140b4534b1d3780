package tasks

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden is what the harness asks of the tasks in testdata, and random numbers of Python: testdata/prompts.py.
type golden struct {
	Requests map[string][][]string
	Draws    []struct {
		Seed  uint32
		N, K  int
		Twice [2][]int
	}
}

func readGolden(t *testing.T) (g golden) {
	text, err := os.ReadFile("testdata/prompts.json")
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAsksWhatTheHarnessAsks(t *testing.T) {
	set, err := Load("testdata/tasks")
	if err != nil {
		t.Fatal(err)
	}
	want := readGolden(t).Requests
	for _, task := range set.Tasks {
		questions, _, err := task.questions(0)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, q := range questions {
			n := len(q.choices)
			for i, r := range q.requests {
				switch {
				case task.Output == Rolling:
					got = append(got, []string{r.continuation})
				case task.Output == Generate:
					got = append(got, []string{r.context})
				case i < n || n == 0 || task.has("acc_mutual_info"):
					got = append(got, []string{r.context, r.continuation})
				}
			}
		}
		if len(got) != len(want[task.Name]) {
			t.Errorf("%s: %d requests, want %d", task.Name, len(got), len(want[task.Name]))
			continue
		}
		for i := range got {
			if !slices.Equal(got[i], want[task.Name][i]) {
				t.Errorf("%s, request %d: %q, want %q", task.Name, i, got[i], want[task.Name][i])
				break
			}
		}
		delete(want, task.Name)
	}
	if len(want) > 0 {
		t.Errorf("not asked: %v", want)
	}
}

func TestDrawsAsPythonDoes(t *testing.T) {
	for _, d := range readGolden(t).Draws {
		p := newPython(d.Seed)
		for _, want := range d.Twice {
			if got := p.sample(d.N, d.K); !slices.Equal(got, want) {
				t.Errorf("%d of %d with seed %d: %v, want %v", d.K, d.N, d.Seed, got, want)
			}
		}
	}
}

const plain = `task: x
dataset_path: json
dataset_kwargs: {data_files: {test: items.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: question
doc_to_choice: choices
doc_to_target: answer
`

// taskFile writes a task beside its data.
func taskFile(t testing.TB, text string) string {
	dir := t.TempDir()
	items, err := os.ReadFile("testdata/tasks/items.jsonl")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "items.jsonl"), items, 0o666)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(text), 0o666)
	}
	if err == nil && strings.Contains(text, "[y.yaml") {
		err = os.WriteFile(filepath.Join(dir, "y.yaml"), []byte("num_fewshot: 0\n"), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "x.yaml")
}

func TestWhatIsNotSupportedIsNamedWithItsPlace(t *testing.T) {
	for _, c := range []struct{ change, says, at, try string }{
		{"metrics: [acc]", "unknown key metrics", "x.yaml:9", ""},
		{"num_fewshots: 3", "unknown key num_fewshots", "x.yaml:9", "num_fewshot"},
		{"process_docs: !function utils.f", "!function calls Python", "x.yaml:9", "written into the data"},
		{"process_results: f", "process_results is not supported", "x.yaml:9", ""},
		{"metric_list: [{metric: f1}]", "does not have the metric f1", "x.yaml:9", ""},
		{"metric_list: [{metric: acc, aggregation: median}]", "cannot be aggregated by median", "x.yaml:9", "mean"},
		{"metric_list: [{metric: acc, ignore_case: true}]", "ignore_case is for exact_match", "x.yaml:9", ""},
		{"metric_list: [{metric: acc, hf_evaluate: true}]", "unknown key hf_evaluate", "x.yaml:9", ""},
		{"metric_list: [{metric: acc}, {metric: acc}]", "given twice", "x.yaml:9", ""},
		{"num_fewshot: -1", "not a whole number of at least 0", "x.yaml:9", ""},
		{"num_fewshot: 7", "num_fewshot 7 is more than the 6 items", "x.yaml", ""},
		{"num_fewshot: 6\nfewshot_split: test", "more than the 5 items", "x.yaml", ""},
		{"repeats: 2", "repeats 2", "x.yaml:9", ""},
		{"fewshot_config: {sampler: balanced}", "sampler cannot be balanced", "x.yaml:9", "first_n"},
		{"generation_kwargs: {until: a}", "no use of generation_kwargs", "x.yaml:9", ""},
		{"filter_list: []", "no use of filter_list", "x.yaml:9", ""},
		{"gen_prefix: '{{ a'", "{{ without its end", "x.yaml:9", ""},
		{"gen_prefix: '{{ nothing }}'", "nothing is not a field of the item", "x.yaml:9", ""},
		{"dataset_name: en", "dataset_name en", "x.yaml:9", ""},
		{"include: y.yaml", "y.yaml", "", ""},
		{"include: x.yaml", "include each other", "x.yaml:9", ""},
		{"include: [" + strings.Repeat("y.yaml, ", 300) + "]", "more than 256 files are included", "x.yaml:9", ""},
		{"training_split: train\nnum_fewshot: 1", "the data has no split train", "x.yaml:1", ""},
		{"dataset_path: squad", "already defined", "", ""},
	} {
		err := prepareTask(taskFile(t, plain+c.change+"\n"))
		if c.says == "already defined" {
			c.says = "dataset_path appears twice"
		}
		var p *Problem
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.at) ||
			!strings.Contains(err.Error(), c.try) || c.at != "" && !errors.As(err, &p) {
			t.Errorf("%q: %v", c.change, err)
		}
	}
	for _, c := range []struct{ was, now, says string }{
		{"json", "squad", "not in local files"}, {"items.jsonl", "nothing.jsonl", "nothing.jsonl is no file"},
		{"items.jsonl", "https://x/y", "nothing is downloaded"}, {"test_split: test\n", "", "neither test_split"},
		{"task: x\n", "", "task is missing"}, {"multiple_choice", "multiple_choices", "cannot be multiple_choices"},
		{"doc_to_text: question\n", "", "doc_to_text is missing"}, {"doc_to_choice: choices\n", "", "doc_to_choice is"},
		{"doc_to_choice: choices\n", "doc_to_choice: []\n", "has no choice"},
		{"doc_to_choice: choices\n", "doc_to_choice: ['', b]\n", "without text"},
		{"doc_to_target: answer\n", "", "doc_to_target is missing"},
		{"doc_to_choice: choices", "doc_to_choice: subject", "is not a list"},
		{"doc_to_choice: choices", "doc_to_choice: choicez", "items have no field choicez; they have answer, choices"},
		{"doc_to_choice: choices", "doc_to_choice: answer", "is not a list of choices"},
		{"doc_to_choice: choices", "doc_to_choice: [" + strings.Repeat("a, ", 1025) + "]", "1025 choices"},
		{"doc_to_choice: choices", "doc_to_choice: '{{ range(1025)|list }}'", "1025 choices"},
		{"doc_to_text: question", "doc_to_text: '{{answer}}'", "the number of a choice"},
		{"doc_to_text: question", "doc_to_text: choices", "is not a text"},
	} {
		err := prepareTask(taskFile(t, strings.Replace(plain, c.was, c.now, 1)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.now, err)
		}
	}
	documents := "metadata: {version: 1, any: [thing]}\ndataset_name: null\ntag: t\n"
	if err := prepareTask(taskFile(t, plain+documents)); err != nil {
		t.Errorf("keys that document: %v", err)
	}
}

// prepareTask reads a task and all that it asks.
func prepareTask(path string) error {
	set, err := Load(path)
	if err != nil {
		return err
	}
	for _, task := range set.Tasks {
		if _, _, err := task.questions(0); err != nil {
			return err
		}
	}
	return nil
}

// A link to a directory stands for the directory.
func TestALinkToTasksIsFollowed(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(taskFile(t, plain)), link); err != nil {
		t.Skip(err)
	}
	set, err := Load(link)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(link, "x.yaml"); len(set.Tasks) != 1 || set.Tasks[0].File != want {
		t.Errorf("%+v, want the task of %s", set.Tasks, want)
	}
}

// Rows of parquet are items, as lines of JSON are.
func TestRowsOfParquetAreItems(t *testing.T) {
	file := "../internal/parquet/testdata/fields-v1.parquet"
	items, err := source{"parquet", map[string][]string{"test": {file}}}.items("test")
	if err != nil || len(items) == 0 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	if _, ok := items[0]["text"].(string); !ok || len(items[0]) < 3 {
		t.Errorf("the first is %v", items[0])
	}
}

// A byte order mark before a task and before its data is no part of them.
func TestByteOrderMarksAreLeftOut(t *testing.T) {
	path := taskFile(t, byteOrderMark+plain)
	data := filepath.Join(filepath.Dir(path), "items.jsonl")
	items, err := os.ReadFile(data)
	if err == nil {
		err = os.WriteFile(data, append([]byte(byteOrderMark), items...), 0o666)
	}
	if err == nil {
		err = prepareTask(path)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestDamagedDataIsNamedWithItsLine(t *testing.T) {
	path := taskFile(t, plain)
	for text, says := range map[string]string{
		"{\"question\": \"a\"}\n{": "items.jsonl:2", "[1]\n": "items.jsonl:1: an item is an object",
		"{} {}\n": "more than one value",
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "items.jsonl"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		err := prepareTask(path)
		var damaged *DataError
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "items.jsonl"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := prepareTask(path); err == nil || !strings.Contains(err.Error(), "has no items") {
		t.Errorf("no items: %v", err)
	}
}

// A group averages what its tasks have: by their sizes or alike, with the pooled standard error; what a task lacks is
// named before anything is asked.
func TestGroupsAverageTheirTasks(t *testing.T) {
	tasks := []TaskResult{
		{Task: "a", Items: 10, Metrics: []MetricResult{{"acc", "none", 0.5, 0.1, true}}},
		{Task: "b", Items: 30, Metrics: []MetricResult{{"acc", "none", 0.9, 0.05, true}}},
		{Task: "c", Items: 50, Metrics: []MetricResult{{"acc", "none", 0, 0, true}}},
	}
	g := group{tasks: []string{"a", "b"}}
	bySize := g.average(groupMetric{"acc", true, nil}, "none", tasks)
	alike := g.average(groupMetric{"acc", false, nil}, "none", tasks)
	pooled := math.Sqrt((9*0.01*10 + 29*0.0025*30) / 38 / 40)
	if math.Abs(float64(bySize.Value)-0.8) > 1e-12 || math.Abs(float64(alike.Value)-0.7) > 1e-12 ||
		math.Abs(float64(bySize.Stderr)-pooled) > 1e-12 {
		t.Errorf("%v by size, %v alike, want 0.8 ± %v and 0.7", bySize, alike, pooled)
	}
	path := taskFile(t, plain)
	for text, says := range map[string]string{
		"group: g\ntask: [x]\naggregate_metric_list: [{metric: acc}]\n":                      "",
		"group: g\ntask: [x]\naggregate_metric_list: [{metric: exact_match}]\n":              "which its task x lacks",
		"group: g\ntask: [x]\naggregate_metric_list: [{metric: acc, aggregation: median}]\n": "by median",
		"group: g\ntask: [y]\n":    "the task y, which no file",
		"group: g\ntask: []\n":     "a group without tasks",
		"group: g\ntask: [x, x]\n": "the task x twice",
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "_g.yaml"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Load(filepath.Dir(path))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
