package tasks

import "anneal/internal/nanjson"

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
