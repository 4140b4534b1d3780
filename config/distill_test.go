package config

import (
	"strings"
	"testing"
)

// What a teacher cannot do is said with the key, and how its device has no kernels.
func TestWhatATeacherCannotDo(t *testing.T) {
	for overrides, want := range map[string]string{
		"distill.temperature=0":               "distill.temperature",
		"distill.temperature=-1":              "distill.temperature",
		"distill.weight=0":                    "distill.weight",
		"distill.weight=1.1":                  "distill.weight",
		"distill.top_k=0":                     "distill.top_k",
		"distill.step=-1":                     "distill.step",
		"device=cuda":                         "distill.teacher",
		"parallel.tensor=2":                   "distill.teacher",
		"parallel.pipeline=2":                 "distill.teacher",
		"parallel.context=2":                  "distill.teacher",
		"model.vocab=300 distill.top_k=301":   "distill.top_k",
		"distill.temperature=NaN":             "distill.temperature",
		"distill.top_k=1e9 distill.weight=-1": "distill.weight",
	} {
		p := problemsOf(t, minimal, append([]string{"distill.teacher=x"}, strings.Fields(overrides)...)...)
		found := false
		for _, x := range p {
			found = found || x.Key == want && x.Try != "" && x.At != ""
		}
		if !found {
			t.Errorf("%s: %+v", overrides, p)
		}
	}
	c, err := parse([]byte(minimal), "run.yaml", []string{"distill.teacher=x", "parallel.ranks=2"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckKernels("cuda"); err == nil || !strings.Contains(err.Error(), "distill.teacher has no kernels") {
		t.Errorf("--device cuda: %v", err)
	}
	p := problemsOf(t, minimal, "distill.weight=0.7")
	if len(p) != 1 || !strings.Contains(p[0].Message, "without distill.teacher") {
		t.Errorf("a weight without a teacher: %+v", p)
	}
}
