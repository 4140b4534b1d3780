package config

import (
	"strings"
	"testing"
)

// What embeddings have of the token before is refused, by its key, where it does not work.
func TestWhatPrecedesIsRefusedWhereItDoesNotWork(t *testing.T) {
	for _, given := range []string{"model.bigram=64", "model.smear=true"} {
		key, _, _ := strings.Cut(given, "=")
		for with, says := range map[string]string{
			"parallel.ranks=2 parallel.tensor=2":   "parallel.tensor",
			"parallel.ranks=2 parallel.context=2":  "on another rank",
			"parallel.ranks=2 parallel.pipeline=2": "parallel.pipeline",
			"model.family=llama":                   "model.family = llama",
		} {
			set := append([]string{"model.family=anneal", given}, strings.Fields(with)...)
			found := false
			for _, p := range problemsOf(t, minimal, set...) {
				found = found || p.Key == key && strings.Contains(p.Message, says)
			}
			if !found {
				t.Errorf("%s with %s is not refused: %+v", given, with, problemsOf(t, minimal, set...))
			}
		}
	}
	for set, says := range map[string]string{"model.bigram=-1": "too small", "model.bigram=1e9": "too large"} {
		p := problemsOf(t, minimal, "model.family=anneal", set)
		if len(p) != 1 || p[0].Key != "model.bigram" || !strings.Contains(p[0].Message, says) {
			t.Errorf("%s: %+v", set, p)
		}
	}
}
