package main

import (
	"strings"
	"testing"
)

// Every topic has a table, shown with the config key of the same name if there is one; number formats and optimizers
// are topics.
func TestExplainHasTables(t *testing.T) {
	for topic, says := range map[string][]string{
		"bf16": {"Number formats", "3.39e+38"}, "adamw": {"Memory of optimizers", "53.9 GB"},
		"zero": {"parallel.zero: ", "1.75 GB"}, "recompute": {"memory.recompute: ", "more operations"},
		"mixed-precision": {"126 GB"},
	} {
		code, out, errs := anneal("explain", topic)
		for _, text := range says {
			if code != exitOK || !strings.Contains(out, text) {
				t.Errorf("explain %s: exit %d, without %q\n%s%s", topic, code, text, out, errs)
			}
		}
	}
	w := newWorkshop(t)
	w.keys(w.object(exitOK, "explain", "formats"), "name", "columns", "rows", "notes")
	w.keys(w.object(exitOK, "explain", "zero"), "key", "table")
}

// The quiz counts right answers, asks again if the answer is not a number, and shows the right one.
func TestQuizInTurns(t *testing.T) {
	w := newWorkshop(t)
	v := w.object(exitOK, "quiz", "--seed", "5", "--questions", "3")
	var answers strings.Builder
	for i, q := range v["questions"].([]any) {
		right := int(q.(map[string]any)["right"].(float64)) + 1
		if i == 1 {
			answers.WriteString("what?\n9\n")
			right = 1 + right%3
		}
		answers.WriteString(string(rune('0'+right)) + "\n")
	}
	var out, errs strings.Builder
	args := []string{"quiz", "--seed", "5", "--questions", "3"}
	code := execute(args, strings.NewReader(answers.String()), &out, &errs)
	count := func(text string) int { return strings.Count(out.String(), text) }
	if code != exitOK || count("2 of 3.") != 1 || count(" yes. ") != 2 || count(" no: ") != 1 ||
		count("a number from 1 to") != 2 {
		t.Errorf("exit %d\n%s%s", code, &out, &errs)
	}
	if code, out, _ := anneal("quiz", "--questions", "2"); code != exitOK || !strings.Contains(out, "0 of 0.") {
		t.Errorf("without answers: exit %d\n%s", code, out)
	}
	if code, _, _ := anneal("quiz", "--questions", "0"); code != exitUsage {
		t.Errorf("no questions: exit %d", code)
	}
}
