package tasks

import (
	"fmt"
	"slices"
	"strings"

	"anneal/internal/nearest"
	"anneal/tasks/jinja"

	"github.com/goccy/go-yaml/ast"
)

// An Output says how a model answers.
type Output string

const (
	MultipleChoice Output = "multiple_choice"       // the most likely of several continuations
	LogLikelihood  Output = "loglikelihood"         // how likely a continuation is
	Rolling        Output = "loglikelihood_rolling" // how likely a text is
	Generate       Output = "generate_until"        // what it writes
)

// Task is a task as its file describes it.
type Task struct {
	Name, Alias string
	File        string // where it is
	Output      Output
	Shots       int // examples before each item

	data        source
	splits      splits
	description *field
	text        *field // doc_to_text
	target      *field // doc_to_target; nil if constant is it
	constant    any    // a doc_to_target that is a number or a list
	choice      *field // doc_to_choice; nil if choices holds it or there is none
	choices     []string
	prefix      *field // gen_prefix
	delimiter   string // target_delimiter
	between     string // fewshot_delimiter
	sampler     string

	metrics    []metric
	filters    []pipeline
	generation generation
}

// splits holds the names of the data's splits; "" where there is none.
type splits struct{ training, validation, test, shots string }

// evaluated returns the split that is scored.
func (s splits) evaluated() string {
	if s.test != "" {
		return s.test
	}
	return s.validation
}

// examples returns the split that examples come from.
func (s splits) examples() string {
	for _, name := range []string{s.shots, s.training, s.validation} {
		if name != "" {
			return name
		}
	}
	return s.test
}

// generation holds the keys of generation_kwargs that are used.
type generation struct {
	until  []string
	tokens int
}

// A field yields a value for an item: the value of one of the item's fields, or the text of a template.
type field struct {
	*entry
	source   string
	template *jinja.Template
}

// used, documenting and unsupported are the keys of a task: those that are read, those that change no figure, and
// those of the harness that cannot be used.
var (
	used = []string{"task", "task_alias", "include", "dataset_path", "dataset_name", "dataset_kwargs", "training_split",
		"validation_split", "test_split", "fewshot_split", "output_type", "doc_to_text", "doc_to_target",
		"doc_to_choice", "description", "num_fewshot", "fewshot_config", "fewshot_delimiter", "target_delimiter",
		"gen_prefix", "metric_list", "filter_list", "generation_kwargs", "repeats"}
	documenting = []string{"tag", "metadata", "should_decontaminate", "doc_to_decontamination_query"}
	unsupported = []string{"class", "custom_dataset", "process_docs", "process_results", "use_prompt", "doc_to_image",
		"doc_to_audio", "unsafe_code", "recipe"}
)

// newTask makes a task from the keys of its file.
func newTask(file string, keys []*entry) (*Task, error) {
	t := &Task{File: file, Output: Generate, delimiter: " ", between: "\n\n", sampler: "default"}
	byName := map[string]*entry{}
	for _, e := range keys {
		switch {
		case slices.Contains(unsupported, e.key):
			return nil, e.problem("a task without it", "%s is not supported", e.key)
		case slices.Contains(documenting, e.key):
		case !slices.Contains(used, e.key):
			return nil, e.unknown(used)
		default:
			byName[e.key] = e
		}
	}
	for _, read := range []func(map[string]*entry) error{t.readData, t.readPrompt, t.readShots, t.readScores} {
		if err := read(byName); err != nil {
			return nil, err
		}
	}
	return t, t.check(byName)
}

// set reads the key into a variable if it is present and not null.
func set[T any](keys map[string]*entry, name string, to *T, read func(*entry) (T, error)) error {
	e := keys[name]
	if e == nil || e.null() {
		return nil
	}
	v, err := read(e)
	if err == nil {
		*to = v
	}
	return err
}

// all returns the first error.
func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Task) readData(keys map[string]*entry) error {
	path := ""
	err := all(
		set(keys, "task", &t.Name, (*entry).text),
		set(keys, "task_alias", &t.Alias, (*entry).text),
		set(keys, "dataset_path", &path, (*entry).text),
		set(keys, "training_split", &t.splits.training, (*entry).text),
		set(keys, "validation_split", &t.splits.validation, (*entry).text),
		set(keys, "test_split", &t.splits.test, (*entry).text),
		set(keys, "fewshot_split", &t.splits.shots, (*entry).text),
	)
	switch name := keys["dataset_name"]; {
	case err != nil:
		return err
	case path == "":
		return &Problem{At: t.File, Message: "dataset_path is missing", Try: "dataset_path: json"}
	case path != "json" && path != "parquet":
		return keys["dataset_path"].problem("json or parquet, with dataset_kwargs.data_files: nothing is downloaded",
			"dataset_path %s is not in local files", clip(path))
	case name != nil && !name.null():
		return name.problem("leaving it out", "dataset_name %s: local files have no parts", clip(name.node.String()))
	case keys["dataset_kwargs"] == nil:
		return &Problem{
			At: t.File, Message: "dataset_kwargs is missing",
			Try: "dataset_kwargs: {data_files: {test: items.jsonl}}",
		}
	}
	t.data, err = readSource(path, keys["dataset_kwargs"])
	return err
}

func (t *Task) readPrompt(keys map[string]*entry) error {
	return all(
		set(keys, "output_type", &t.Output, func(e *entry) (Output, error) {
			kinds := []string{string(MultipleChoice), string(LogLikelihood), string(Rolling), string(Generate)}
			s, err := e.text()
			if err == nil && !slices.Contains(kinds, s) {
				err = e.among(s, kinds)
			}
			return Output(s), err
		}),
		set(keys, "description", &t.description, readField),
		set(keys, "doc_to_text", &t.text, readField),
		set(keys, "gen_prefix", &t.prefix, readField),
		set(keys, "target_delimiter", &t.delimiter, (*entry).text),
		set(keys, "fewshot_delimiter", &t.between, (*entry).text),
		t.readTarget(keys["doc_to_target"]),
		t.readChoices(keys["doc_to_choice"]),
	)
}

// among returns the Problem of a text that is not among the known ones.
func (e *entry) among(s string, known []string) *Problem {
	try := "one of " + strings.Join(known, ", ")
	if n := nearest.To(s, known); n != "" {
		try = n
	}
	return e.problem(try, "%s cannot be %s", e.key, clip(s))
}

func readField(e *entry) (*field, error) {
	s, err := e.text()
	if err != nil {
		return nil, err
	}
	f := &field{entry: e, source: s}
	if f.template, err = jinja.Parse(s); err != nil {
		return nil, e.problem("", "%s: %v", e.key, err)
	}
	return f, nil
}

func (t *Task) readTarget(e *entry) (err error) {
	if e == nil || e.null() {
		return nil
	}
	switch e.node.(type) {
	case *ast.IntegerNode, *ast.SequenceNode:
		t.constant, err = e.value()
	default:
		t.target, err = readField(e)
	}
	return err
}

func (t *Task) readChoices(e *entry) (err error) {
	if e == nil || e.null() {
		return nil
	}
	if _, list := e.node.(*ast.SequenceNode); list {
		t.choices, err = e.texts()
		return t.limitChoices(e, err)
	}
	if _, ok := e.node.(ast.MapNode); !ok {
		t.choice, err = readField(e)
		return err
	}
	values, err := pairs(e.file, e.node)
	for _, v := range values {
		s, err := v.text()
		if err != nil {
			return err
		}
		t.choices = append(t.choices, s)
	}
	return t.limitChoices(e, err)
}

func (t *Task) limitChoices(e *entry, err error) error {
	switch {
	case err != nil:
		return err
	case len(t.choices) > maxChoices:
		return e.problem("fewer of them", "doc_to_choice has %d choices, more than %d", len(t.choices), maxChoices)
	case len(t.choices) == 0 || slices.Contains(t.choices, ""):
		return e.problem("texts to choose from", "doc_to_choice has no choice, or one without text")
	}
	return nil
}

func (t *Task) readShots(keys map[string]*entry) error {
	err := all(
		set(keys, "num_fewshot", &t.Shots, func(e *entry) (int, error) { return e.whole(0) }),
		set(keys, "repeats", new(int), func(e *entry) (int, error) {
			n, err := e.whole(1)
			if err == nil && n > 1 {
				err = e.problem("repeats: 1", "repeats %d: answers are not sampled, so all would be the same", n)
			}
			return n, err
		}),
	)
	e := keys["fewshot_config"]
	if err != nil || e == nil || e.null() {
		return err
	}
	options, err := e.mapping("sampler", "split")
	for _, o := range options {
		var s string
		if s, err = o.text(); err != nil {
			return err
		}
		switch {
		case o.key == "split":
			t.splits.shots = s
		case s != "default" && s != "first_n":
			return o.among(s, []string{"default", "first_n"})
		default:
			t.sampler = s
		}
	}
	return err
}

// check finds keys that contradict each other.
func (t *Task) check(keys map[string]*entry) error {
	at := &Problem{At: t.File}
	if e := keys["task"]; e != nil {
		at.At = e.at()
	}
	say := func(try, format string, args ...any) error {
		at.Message, at.Try = fmt.Sprintf(format, args...), try
		return at
	}
	choices := t.choice != nil || t.choices != nil
	switch {
	case t.Name == "":
		return say("task: NAME", "task is missing")
	case t.Alias == "":
		t.Alias = t.Name
	}
	switch {
	case t.splits.evaluated() == "":
		return say("test_split: test", "neither test_split nor validation_split is given")
	case t.text == nil && t.Output != Rolling:
		return say("doc_to_text: a field of the data or a template", "doc_to_text is missing")
	case t.target == nil && t.constant == nil:
		return say("doc_to_target: a field of the data or a template", "doc_to_target is missing")
	case t.Output == MultipleChoice && !choices:
		return say("doc_to_choice: [no, yes]", "doc_to_choice is missing")
	case t.Output == Rolling && t.Shots > 0:
		return say("num_fewshot: 0", "examples cannot stand before a whole text")
	}
	for _, name := range []string{t.splits.evaluated(), t.splits.examples()} {
		if t.data.files[name] == nil && (name == t.splits.evaluated() || t.Shots > 0) {
			return say("a split of dataset_kwargs.data_files", "the data has no split %s", clip(name))
		}
	}
	return nil
}
