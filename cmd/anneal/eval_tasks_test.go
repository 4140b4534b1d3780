package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"anneal/tasks"
)

// Tasks have figures, samples, and errors with their exit codes; a run in training has the same figures at its end.
func TestEvalTasks(t *testing.T) {
	w := newWorkshop(t)
	task := "task: next\ndataset_path: json\ndataset_kwargs: {data_files: {test: items.jsonl}}\ntest_split: test\n" +
		"output_type: multiple_choice\ndoc_to_text: a\ndoc_to_choice: [b, c d]\ndoc_to_target: right\n"
	write(t, w.path("next.yaml"), task)
	items := "{\"a\": \"func\", \"right\": 0}\n{\"a\": \"if\", \"right\": 1}\n"
	write(t, w.path("items.jsonl"), strings.Repeat(items, 3))
	run, samples := w.path("run"), w.path("samples.jsonl")
	code, _, errs := anneal("train", w.path("run.yaml"), "--out", run, "train.steps=4", "precision=fp32",
		"eval.tasks="+w.path("next.yaml"))
	if code != exitOK || !strings.Contains(errs, "next acc ") {
		t.Fatalf("exit %d, without figures:\n%s", code, errs)
	}
	v := w.object(exitOK, "eval", run, "--tasks", w.path("next.yaml"), "--samples", samples, "--by", "right")
	w.keys(v, "tasks", "groups", "tokens", "scored_tokens", "prompts", "step", "samples", "seconds")
	first := v["tasks"].([]any)[0].(map[string]any)
	w.keys(first, "task", "items", "of", "num_fewshot", "output_type", "metrics", "parts")
	accuracy := first["metrics"].([]any)[0].(map[string]any)
	w.keys(accuracy, "metric", "filter", "value", "stderr", "higher_is_better")

	text, err := os.ReadFile(samples)
	if err != nil {
		t.Fatal(err)
	}
	right := 0.0
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		var s struct{ Metrics map[string]float64 }
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		right += s.Metrics["acc"]
	}
	if len(lines) != 6 || accuracy["value"] != right/6 {
		t.Errorf("%d samples with an accuracy of %g, the task's is %v", len(lines), right/6, accuracy["value"])
	}
	metrics, err := os.ReadFile(w.path("run/metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var last struct{ Tasks map[string]map[string]float64 }
	steps := strings.Split(strings.TrimSpace(string(metrics)), "\n")
	if err := json.Unmarshal([]byte(steps[len(steps)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if got := last.Tasks["next"]["acc"]; got != accuracy["value"] {
		t.Errorf("in training %g, afterwards %v", got, accuracy["value"])
	}

	write(t, w.path("unknown.yaml"), task+"metrics: [acc]\n")
	write(t, w.path("damaged.yaml"), strings.Replace(task, "items", "damaged", 1))
	write(t, w.path("damaged.jsonl"), "{\n")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "unknown.yaml:9", []string{"--tasks", w.path("unknown.yaml")}},
		{exitData, "damaged.jsonl:1", []string{"--tasks", w.path("damaged.yaml")}},
		{exitData, "none.yaml", []string{"--tasks", w.path("none.yaml")}},
		{exitUsage, "field colour", []string{"--tasks", w.path("next.yaml"), "--by", "colour"}},
		{exitUsage, "two evaluations", []string{"--tasks", w.path("next.yaml"), "--data", w.path("data")}},
		{exitUsage, "nothing to evaluate on", nil},
		{exitUsage, "are for --tasks", []string{"--data", w.path("data"), "--limit", "3"}},
		{exitUsage, "are for --data", []string{"--tasks", w.path("next.yaml"), "--tokens", "3"}},
	} {
		code, _, errs := anneal(append([]string{"eval", run}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Count(errs, "error:") != 1 {
			t.Errorf("%v: exit %d, want %d with %q:\n%s", c.args, code, c.code, c.says, errs)
		}
	}
}

// The figures of metrics are aligned, however long the names of their filters are.
func TestFiguresAreAligned(t *testing.T) {
	var out, errs strings.Builder
	s := &session{stdout: &results{w: &out}, stderr: &errs, status: newStatus(&errs)}
	printTasks(s, &tasks.Result{Tasks: []tasks.TaskResult{{Alias: "gsm8k", Metrics: []tasks.MetricResult{
		{Name: "exact_match", Filter: "flexible-extract", HigherIsBetter: true}, {Name: "acc", Filter: "none"},
	}}}})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || strings.Index(lines[1], "0.0000") != strings.Index(lines[2], "0.0000") {
		t.Errorf("the figures are not below each other:\n%s", out.String())
	}
}
