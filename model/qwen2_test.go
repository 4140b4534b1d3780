package model

import "testing"

// Logits, loss and every gradient are those of Qwen2ForCausalLM, for the same weights, in float64.
func TestQwen2IsThatOfTransformers(t *testing.T) {
	g := readGolden(t, "qwen2.json")
	c := small
	c.QKVBias, c.TieEmbeddings, c.RopeTheta = true, true, 500
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab, c.Heads, c.KVHeads, c.HeadDim = 4, 12, 20, 10, 13, 4, 2, 4
	x := g.bench(t, c, c.Context)
	g.fill(t, x)
	g.check(t, x)
}

// The same of LlamaForCausalLM with a tied head and grouped queries, which is SmolLM.
func TestLlamaIsThatOfTransformers(t *testing.T) {
	g := readGolden(t, "llama.json")
	c := small
	c.TieEmbeddings, c.RopeTheta = true, 500
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab, c.Heads, c.KVHeads, c.HeadDim = 4, 12, 20, 10, 13, 4, 2, 4
	x := g.bench(t, c, c.Context)
	g.fill(t, x)
	g.check(t, x)
}

func TestBiasesOfQueriesKeysAndValues(t *testing.T) {
	c := small
	c.QKVBias = true
	checkFootprint(t, c)
	checkPacking(t, c)
	x := newBench(t, c, "fp64", 2, 8)
	x.gradients()
	checkGradients(t, x)
}
