package config

import (
	"strings"
	"testing"
)

// What could not learn, or would be ignored, is refused with the way out.
func TestInitCombinationsThatCannotWork(t *testing.T) {
	for _, c := range []struct{ overrides, key, try string }{
		{"model.init=smal", "model.init", "small"},
		{"model.zero_init=all", "model.zero_init", "both"},
		{"model.init=small model.init_std=0.05", "model.init_std", "model.init = gpt2"},
		{"model.zero_init=head", "model.zero_init", "model.tie_embeddings = false"},
		{"model.zero_init=both", "model.zero_init", "model.zero_init = residual"},
	} {
		p := problemsOf(t, minimal, strings.Fields(c.overrides)...)
		if len(p) != 1 || p[0].Key != c.key || !strings.Contains(p[0].Try, c.try) {
			t.Errorf("%s: %+v, want %s try … %s …", c.overrides, p, c.key, c.try)
		}
	}
	for _, fine := range []string{
		"model.init=small", "model.init=he model.init_std=0.05", "model.zero_init=head model.tie_embeddings=false",
	} {
		if _, err := parse([]byte(minimal), "run.yaml", strings.Fields(fine)); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}
