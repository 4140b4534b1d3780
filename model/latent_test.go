package model

import (
	"testing"

	"anneal/precision"
)

// mla is a small model with latent attention.
var mla = func() Config {
	c := small
	c.KVHeads, c.HeadDim, c.KVLoraRank, c.RopeHeadDim, c.Attention = c.Heads, 6, 5, 2, seen("window:4,full")
	return c
}()

// Logits, loss and every gradient are those of a dense DeepseekV2ForCausalLM for the same weights, in float64.
func TestLatentAttentionIsThatOfTransformers(t *testing.T) {
	g := readGolden(t, "mla.json")
	c := mla
	c.Attention, c.TieEmbeddings, c.RopeTheta, c.NormEps, c.KVLoraRank = nil, true, 500, 1e-6, 6
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab, c.Heads, c.KVHeads = 4, 12, 20, 10, 13, 4, 4
	x := g.bench(t, c, c.Context)
	g.fill(t, x)
	g.check(t, x)
}

func TestGradientsOfLatentAttentionMatchFiniteDifferences(t *testing.T) {
	for name, recompute := range map[string]Layout{"kept": {}, "recomputed": {Whole: 1, Segment: 1, Attention: 1}} {
		t.Run(name, func(t *testing.T) {
			c := mla
			c.Recompute = recompute
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
	}
}

func TestLatentAttentionKeepsItsBitsAndFootprint(t *testing.T) {
	checkFootprint(t, mla)
	for _, policy := range precision.Names() {
		c := mla
		c.Layers = 5
		checkRecomputation(t, c, policy)
		checkLossesWithoutTape(t, mla, policy)
	}
}
