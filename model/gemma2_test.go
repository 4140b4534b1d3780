package model

import (
	"testing"

	"anneal/precision"
)

// gemma2 is the smallest Gemma 2 with all that it has; many of its scores reach their cap.
var gemma2 = func() Config {
	c := small
	c.Family, c.Activation, c.Attention = "gemma2", "geglu", seen("window:4,full")
	c.RopeTheta, c.ScoreDim, c.LogitSoftcap, c.AttentionSoftcap = 500, 6, 3, 0.5
	return c
}()

// Logits, loss and every gradient are those of Gemma2ForCausalLM for the same weights, in float64.
func TestGemma2IsThatOfTransformers(t *testing.T) {
	g := readGolden(t, "gemma2.json")
	c := gemma2
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab = 4, 12, 20, 10, 13
	x := g.bench(t, c, c.Context)
	g.fill(t, x)
	g.check(t, x)
}

func TestGemma2KeepsItsBitsAndFootprint(t *testing.T) {
	checkFootprint(t, gemma2)
	for _, policy := range precision.Names() {
		c := gemma2
		c.Layers, c.Dropout = 5, 0.2
		checkRecomputation(t, c, policy)
	}
}

// The published number of parameters of the 2B model, embedding included.
func TestParametersOfGemma2(t *testing.T) {
	m := Outline(Config{
		Family: "gemma2", Activation: "geglu", Layers: 26, Dim: 2304, Heads: 8, KVHeads: 4, HeadDim: 256, FFN: 9216,
		Context: 64, Vocab: 256000, TieEmbeddings: true, RopeTheta: 1e4, NormEps: 1e-6,
	}, precision.Policy{})
	if want := int64(2_614_341_888); m.Count() != want {
		t.Errorf("%d parameters, want %d", m.Count(), want)
	}
}
