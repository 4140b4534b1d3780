package lab

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/prepare/synth"
)

// The text of a mixture: all of it if it is read by size, a multiple of what is read most often if not.
func TestTextOfAMixture(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]int{"small": 300, "large": 900} {
		text, err := synth.Addition{Digits: 3, Train: n, Val: 10, Seed: 1}.Text()
		if err == nil {
			_, err = text.Build(t.Context(), filepath.Join(dir, name), false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	small, large := filepath.Join(dir, "small"), filepath.Join(dir, "large")
	all := int64(0)
	of := func(overrides ...string) (tokens, bytes float64) {
		cfg := config.Default()
		for _, text := range overrides {
			if err := cfg.Override(text); err != nil {
				t.Fatal(err)
			}
		}
		x, err := textOf(cfg)
		if err != nil {
			t.Fatalf("%v: %v", overrides, err)
		}
		all = x.All
		return float64(x.Tokens), float64(x.Bytes)
	}
	a, aBytes := of("data.path=" + small)
	b, bBytes := of("data.path=" + large)
	mix := fmt.Sprintf("data.mix=s=%s, l=%s", small, large)
	for weights, want := range map[string]float64{
		"natural": a + b, "s=1 l=0": a,
		"s=1 l=1": 1 / (0.25/a + 0.25/b), "s=0 l=1, s=1 l=0 from 50%": 1 / (0.25/a + 0.25/b),
	} {
		tokens, bytes := of(mix, "data.weights="+weights)
		read := a + b
		if weights == "s=1 l=0" {
			read = a
		}
		if float64(all) != read {
			t.Errorf("%s: %d tokens in all sources, want %.0f", weights, all, read)
		}
		if math.Abs(tokens/want-1) > 0.001 {
			t.Errorf("%s: %.0f tokens, want %.0f of %.0f and %.0f", weights, tokens, want, a, b)
		}
		if each := bytes / tokens; each < 0.999*min(aBytes/a, bBytes/b) || each > 1.001*max(aBytes/a, bBytes/b) {
			t.Errorf("%s: %.3f bytes a token", weights, each)
		}
	}
	once := fmt.Sprint("train.steps=", int(a+b)/8) // sources that unimax:1 reads once each are all text
	tokens, _ := of(mix, "data.weights=unimax:1", "model.context=8", "train.batch_tokens=8", once)
	if math.Abs(tokens/(a+b)-1) > 0.01 {
		t.Errorf("unimax:1: %.0f tokens, want those of both sources, %.0f", tokens, a+b)
	}
	of("data.path="+small, "model.context=0") // refused elsewhere, with its key
}
