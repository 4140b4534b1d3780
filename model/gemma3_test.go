package model

import (
	"math"
	"testing"

	"anneal/nn"
	"anneal/precision"
)

// gemma is the smallest Gemma 3 with all that it has.
var gemma = func() Config {
	c := small
	c.Family, c.Activation, c.QKNorm, c.Attention = "gemma3", "geglu", true, seen("window:4,full")
	c.RopeTheta, c.RopeThetaLocal, c.ScoreDim, c.LogitSoftcap = 500, 20, 6, 3
	return c
}()

// fill sets the weights of the fixtures of testdata/make_transformers.py.
func (g *golden) fill(t *testing.T, x *bench) {
	t.Helper()
	for n, p := range x.m.Params() {
		if p.Name != g.Grads[n].Name {
			t.Fatalf("parameter %d is %s, want %s", n, p.Name, g.Grads[n].Name)
		}
		offset := 0.0
		if p.Role == nn.Norm {
			offset = 1
		}
		for i := range p.Value.F64() {
			p.Value.F64()[i] = math.Round(300*math.Sin(0.7*float64(i)+1.3*float64(n)))/1000 + offset
		}
	}
}

// Logits, loss and every gradient are those of Gemma3ForCausalLM for the same weights, in float64.
func TestGemma3IsThatOfTransformers(t *testing.T) {
	g := readGolden(t, "gemma3.json")
	c := gemma
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab = 4, 12, 20, 10, 13
	x := g.bench(t, c, c.Context)
	g.fill(t, x)
	g.check(t, x)
}

func TestGemma3GradientsMatchFiniteDifferences(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"gemma3":              func(*Config) {},
		"untied, one base":    func(c *Config) { c.TieEmbeddings, c.RopeThetaLocal, c.ScoreDim = false, 0, 0 },
		"recomputed":          func(c *Config) { c.Recompute = Layout{Whole: 1, Segment: 1, Attention: 1} },
		"no caps, no QK-norm": func(c *Config) { c.LogitSoftcap, c.QKNorm = 0, false },
	} {
		t.Run(name, func(t *testing.T) {
			c := gemma
			change(&c)
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
	}
}

func TestGemma3FootprintIsExactAndStepsAllocateNothing(t *testing.T) {
	checkFootprint(t, gemma)
	c := gemma
	c.Layers, c.Recompute = 5, Layout{Whole: 3, Segment: 2, Attention: 1}
	checkFootprint(t, c)
}

func TestGemma3KeepsItsBits(t *testing.T) {
	for _, policy := range precision.Names() {
		c := gemma
		c.Layers, c.Dropout = 5, 0.2
		checkRecomputation(t, c, policy)
		checkLossesWithoutTape(t, gemma, policy)
	}
}

// The published numbers of parameters of the text models, embeddings included.
func TestParametersOfGemma3(t *testing.T) {
	for _, k := range []struct {
		name                                     string
		layers, dim, heads, kv, head, ffn, vocab int
		want                                     int64
	}{
		{"gemma-3-270m", 18, 640, 4, 1, 256, 2048, 262144, 268_098_176},
		{"gemma-3-1b", 26, 1152, 4, 1, 256, 6912, 262144, 999_885_952},
	} {
		m := Outline(Config{
			Family: "gemma3", Activation: "geglu", QKNorm: true, Layers: k.layers, Dim: k.dim, Heads: k.heads,
			KVHeads: k.kv, HeadDim: k.head, FFN: k.ffn, Context: 64, Vocab: k.vocab, TieEmbeddings: true,
			RopeTheta: 1e6, NormEps: 1e-6,
		}, precision.Policy{})
		if m.Count() != k.want {
			t.Errorf("%s: %d parameters, want %d", k.name, m.Count(), k.want)
		}
	}
}
