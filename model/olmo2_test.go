package model

import (
	"testing"

	"anneal/precision"
)

var olmo2 = func() Config {
	c := small
	c.Family, c.QKNorm, c.RopeTheta, c.KVHeads, c.TieEmbeddings = "olmo2", true, 500, c.Heads, false
	return c
}()

// Logits, loss and every gradient are those of Olmo2ForCausalLM for the same weights, in float64.
func TestOlmo2IsThatOfTransformers(t *testing.T) {
	g := readGolden(t, "olmo2.json")
	c := olmo2
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab = 4, 12, 20, 10, 13
	x := g.bench(t, c, c.Context)
	g.fill(t, x)
	g.check(t, x)
}

func TestOlmo2KeepsItsBitsAndFootprint(t *testing.T) {
	checkFootprint(t, olmo2)
	checkPacking(t, olmo2)
	for _, policy := range precision.Names() {
		c := olmo2
		c.Layers, c.Dropout = 5, 0.2
		checkRecomputation(t, c, policy)
		checkLossesWithoutTape(t, olmo2, policy)
	}
}

// The published number of parameters of the 7B model.
func TestParametersOfOlmo2(t *testing.T) {
	m := Outline(Config{
		Family: "olmo2", QKNorm: true, Layers: 32, Dim: 4096, Heads: 32, KVHeads: 32, HeadDim: 128, FFN: 11008,
		Context: 64, Vocab: 100352, RopeTheta: 5e5, NormEps: 1e-6,
	}, precision.Policy{})
	if want := int64(7_298_617_344); m.Count() != want {
		t.Errorf("%d parameters, want %d", m.Count(), want)
	}
}
