package config

import (
	"strings"
	"testing"
)

// The last pattern that matches wins, number by number, and the others leave the role's group as it is.
func TestPatternsChangeGroupsByName(t *testing.T) {
	var p Patterns
	text := "layers.* lr_ratio=0.5 weight_decay=0.2; layers.1.* lr_ratio=2; embed weight_decay=0;"
	if err := p.UnmarshalText([]byte(text)); err != nil || p.String() != text {
		t.Fatalf("%v, %q", err, p)
	}
	of := Group{LRRatio: 1, WeightDecay: 0.1}
	for name, want := range map[string]Group{
		"layers.0.mlp.up": {0.5, 0.2}, "layers.1.mlp.up": {2, 0.2}, "embed": {1, 0}, "norm": of,
	} {
		if got := p.Of(name, of); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if got := (Patterns{}).Of("embed", of); got != of {
		t.Errorf("without patterns: %+v", got)
	}
	if err := p.Check([]string{"embed", "layers.0.q", "layers.1.q"}); err != nil {
		t.Error(err)
	}
	err := p.Check([]string{"embed", "layers.0.q", "norm"})
	if err == nil || !strings.Contains(err.Error(), `"layers.1.*"`) ||
		!strings.Contains(err.Error(), "embed, layers.*.q, norm") {
		t.Errorf("a pattern without a parameter: %v", err)
	}
}
