package tasks

import (
	"fmt"

	"anneal/internal/nanjson"
	"anneal/internal/units"
)

// Number is a figure of a result: a float64 that is null in JSON if it is not finite; null is read as NaN.
type Number = nanjson.Number

// MetricResult is a figure of a task with its standard error.
type MetricResult struct {
	Name           string `json:"metric"`
	Filter         string `json:"filter"`
	Value          Number `json:"value"`
	Stderr         Number `json:"stderr"` // NaN where it is not known
	HigherIsBetter bool   `json:"higher_is_better"`
}

// TaskResult is the figures of a task.
type TaskResult struct {
	Task    string         `json:"task"`
	Alias   string         `json:"alias"`
	Output  Output         `json:"output_type"`
	Shots   int            `json:"num_fewshot"`
	Items   int            `json:"items"` // that were evaluated
	Of      int            `json:"of"`    // that there are
	Metrics []MetricResult `json:"metrics"`
	Parts   []PartResult   `json:"parts,omitempty"` // by the values of a field

	// Items of multiple choice whose target is none of their choices, so that no answer is right.
	Astray []int `json:"astray,omitempty"`
	// Items that are among their own examples, with their answer, because these come from the evaluated split.
	Known []int `json:"known,omitempty"`
}

// Warnings says which items cannot tell models apart, and why.
func (t *TaskResult) Warnings() (list []string) {
	if n := len(t.Astray); n > 0 {
		list = append(list, fmt.Sprintf("%s: %s of %s have a doc_to_target that is none of their choices, the first "+
			"is item %d; no answer to them counts as right", t.Task, units.Commas(n), units.Count(t.Items, "item"),
			t.Astray[0]))
	}
	if n := len(t.Known); n > 0 {
		list = append(list, fmt.Sprintf("%s: %s of %s are among their own examples, with their answer; the first is "+
			"item %d. Set fewshot_split to another split, or, to draw from the same one without the item itself, to "+
			"that of test_split", t.Task, units.Commas(n), units.Count(t.Items, "item"), t.Known[0]))
	}
	return list
}

// PartResult is the figures of the items that have a value in a field.
type PartResult struct {
	By      string         `json:"by"`
	Value   string         `json:"value"`
	Items   int            `json:"items"`
	Metrics []MetricResult `json:"metrics"`
}

// Result is the figures of a Set.
type Result struct {
	Tasks   []TaskResult  `json:"tasks"`
	Groups  []GroupResult `json:"groups"`
	Tokens  int64         `json:"tokens"`  // that the model read to score continuations
	Scored  int64         `json:"scored"`  // of them, that were scored
	Prompts int           `json:"prompts"` // that the model continued
}
