package model

import (
	"testing"

	"anneal/precision"
)

// sunk is a small model with attention sinks.
var sunk = func() Config {
	c := small
	c.AttentionSinks, c.Attention = true, seen("window:4,full")
	return c
}()

// Logits, loss and every gradient are those of a LlamaForCausalLM with the attention of GptOssForCausalLM, for the same
// weights, in float64.
func TestSinksAreThoseOfTransformers(t *testing.T) {
	g := readGolden(t, "sinks.json")
	c := small
	c.AttentionSinks, c.TieEmbeddings, c.RopeTheta = true, true, 500
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab, c.Heads, c.KVHeads, c.HeadDim = 4, 12, 20, 10, 13, 4, 2, 4
	x := g.bench(t, c, c.Context)
	g.fill(t, x)
	g.check(t, x)
}

func TestGradientsOfSinksMatchFiniteDifferences(t *testing.T) {
	for name, recompute := range map[string]Layout{"kept": {}, "recomputed": {Whole: 1, Segment: 1, Attention: 1}} {
		t.Run(name, func(t *testing.T) {
			c := sunk
			c.Recompute = recompute
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
	}
}

func TestSinksKeepTheirBitsAndFootprint(t *testing.T) {
	checkFootprint(t, sunk)
	for _, policy := range precision.Names() {
		c := sunk
		c.Layers = 5
		checkRecomputation(t, c, policy)
		checkLossesWithoutTape(t, sunk, policy)
	}
}
