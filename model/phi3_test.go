package model

import (
	"testing"

	"anneal/nn"
)

// Logits, loss and every gradient are those of Phi3ForCausalLM for the same weights, in float64: with windows, and with
// the long factors of longrope.
func TestPhi3IsThatOfTransformers(t *testing.T) {
	g := readGolden(t, "phi3.json")
	c := small
	c.Family, c.Layers, c.Dim, c.FFN, c.Context, c.Vocab = "phi3", 4, 12, 20, 10, 13
	c.Heads, c.KVHeads, c.HeadDim = 3, 1, 4
	c.TieEmbeddings, c.RopeTheta, c.NormEps = false, 500, 1e-5
	c.Attention = seen("window:4")
	c.RopeOriginalContext = 4
	c.RopeScaling = nn.RoPEScaling{
		Kind: "longrope", Factor: 2.5, Short: nn.FactorsOf([]float64{1, 1.1}), Long: nn.FactorsOf([]float64{1.2, 2.5}),
	}
	x := g.bench(t, c, c.Context)
	g.fill(t, x)
	g.check(t, x)
}
