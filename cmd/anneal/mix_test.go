package main

import (
	"os"
	"strings"
	"testing"

	"anneal/lab"
)

// A source of little weight is read, so the proposed command does not round its weight to 0.
func TestSmallWeightsAreNotZero(t *testing.T) {
	m := &lab.Mixture{Sources: []lab.MixtureSource{{Name: "a", Weight: 3e-5}, {Name: "b", Weight: 0.99997}}}
	if got := weightsOf(m); got != "a=3e-05 b=1" {
		t.Errorf("the weights are %q", got)
	}
}

// Both searches end with weights that sum to one, a picture and mix.json.
func TestMixtureSearches(t *testing.T) {
	w := newWorkshop(t)
	text := `
precision: fp32
model: {layers: 1, dim: 16, heads: 1, context: 16}
data: {mix: "a=` + w.path("data") + `, b=` + w.path("data") + `"}
train: {steps: 4, batch_tokens: 64, eval_every: 0, eval_tokens: 128}
`
	if err := os.WriteFile(w.path("mix.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"doremi"}, {"regmix", "--proxies", "10", "--target", "b"}} {
		out := w.path(args[0])
		v := w.object(exitOK,
			append([]string{"mix", args[0], w.path("mix.yaml"), "--out", out, "--svg", out + ".svg"}, args[1:]...)...)
		w.keys(v, "method", "sources", "tokens", "config")
		sum := 0.0
		for _, source := range v["sources"].([]any) {
			source := source.(map[string]any)
			w.keys(source, "name", "path", "data", "tokens", "natural", "weight", "epochs")
			sum += source["weight"].(float64)
		}
		if sum < 1-1e-9 || sum > 1+1e-9 {
			t.Errorf("%s: the weights sum to %v", args[0], sum)
		}
		for _, file := range []string{out + ".svg", out + "/mix.json"} {
			if info, err := os.Stat(file); err != nil || info.Size() < 200 {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if code, _, errs := anneal("mix", "doremi", w.path("run.yaml"), "--out", w.path("one")); code != exitUsage ||
		!strings.Contains(errs, "data.mix") {
		t.Errorf("one data set: exit %d, %s", code, errs)
	}
}
