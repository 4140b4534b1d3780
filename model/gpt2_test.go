package model

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"anneal/device/cpu"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// gpt2 is the smallest GPT-2 in which no two sizes are equal but those that must be.
var gpt2 = func() Config {
	c := small
	c.Family, c.Positions, c.KVHeads = "gpt2", schemes("learned"), c.Heads
	return c
}()

// Logits, loss and every gradient are those of GPT2LMHeadModel for the same weights, in float64
// (testdata/make_gpt2.py).
func TestGPT2IsThatOfTransformers(t *testing.T) {
	g := readGolden(t, "gpt2.json")
	k := g.Config
	c := Config{
		Family: "gpt2", Positions: schemes("learned"), Layers: k.Layers, Dim: k.Dim, Heads: k.Heads, KVHeads: k.Heads,
		HeadDim: k.Dim / k.Heads, FFN: 4 * k.Dim, Context: k.Context, Vocab: k.Vocab, TieEmbeddings: true,
		NormEps: k.Eps,
	}
	x := g.bench(t, c, c.Context)
	for n, p := range x.m.Params() {
		scale, offset := 0.2, 0.0
		if p.Value.Rank() == 2 {
			scale = 0.3
		}
		if p.Role == nn.Norm {
			offset = 1
		}
		for i := range p.Value.F64() {
			p.Value.F64()[i] = math.Round(1000*scale*math.Sin(0.7*float64(i)+1.3*float64(n)))/1000 + offset
		}
	}
	g.check(t, x)
}

func TestGPT2GradientsMatchFiniteDifferences(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"gpt2": func(*Config) {},
		"untied, rope, grouped": func(c *Config) {
			c.TieEmbeddings, c.Positions, c.KVHeads = false, schemes("rope"), 2
		},
		"recomputed": func(c *Config) { c.Recompute = Layout{Whole: 1, Segment: 1, Attention: 1} },
		"mup": func(c *Config) {
			setMuP(c, 4, 2, 12, 1, 1.5, 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := gpt2
			change(&c)
			x := newBench(t, c, "fp64", 2, 8)
			for i, p := range x.m.Params() { // biases of zero would hide a bias that is used twice, or scaled
				if p.Role == nn.Bias {
					rng := tensor.NewRNG(9, tensor.PurposeData, uint32(i))
					for j := range p.Value.F64() {
						p.Value.F64()[j] = 0.3 * rng.Normals(uint64(j))[0]
					}
				}
			}
			x.gradients()
			checkGradients(t, x)
		})
	}
}

func TestGPT2FootprintIsExactAndStepsAllocateNothing(t *testing.T) {
	checkFootprint(t, gpt2)
}

// Gradients keep their bits whatever runs again and however many threads compute, dropout included; losses keep theirs
// without a tape.
func TestGPT2KeepsItsBits(t *testing.T) {
	for _, policy := range precision.Names() {
		for _, dropout := range []float64{0, 0.2} {
			c := gpt2
			c.Layers, c.Dropout = 5, dropout
			want := checkRecomputation(t, c, policy)
			other := newBench(t, c, policy, 2, 8)
			other.b.Seq.Noise = noise(1)
			three := cpu.NewTier(other.dev.(*cpu.Device).Tier(), 3)
			defer three.Close()
			other.tape.Device = three
			if !bytes.Equal(other.bits(), want) {
				t.Errorf("%s, dropout %v: three threads give other bits", policy, dropout)
			}
		}
		checkLossesWithoutTape(t, gpt2, policy)
	}
}

// Gains start at one and biases at zero; both are vectors to the optimizer, of which muP scales the rates by depth
// alone.
func TestGPT2BiasesStartAtZero(t *testing.T) {
	c := gpt2
	setMuP(&c, 4, 2, 12, 1, 1, 1)
	x := newBench(t, c, "fp32", 1, 8)
	x.m.ScaleRates(PerElement)
	biases := 0
	for _, p := range x.m.Params() {
		if p.Role != nn.Bias && p.Role != nn.Norm {
			continue
		}
		start, rate := 1.0, 1.0
		if p.Role == nn.Bias {
			start = 0
			biases++
		}
		if strings.HasSuffix(p.Name, "attention.out.bias") || strings.HasSuffix(p.Name, "mlp.down.bias") {
			rate = 0.5 // of 2 layers beside 1
		}
		for i := range p.Value.Len() {
			if p.Value.Float64(i) != start {
				t.Fatalf("%s starts at %v", p.Name, p.Value.Float64(i))
			}
		}
		if p.LRScale != rate {
			t.Errorf("%s has the rate %v, want %v", p.Name, p.LRScale, rate)
		}
	}
	if want := 6*c.Layers + 1; biases != want {
		t.Errorf("%d biases, want %d", biases, want)
	}
	// With sgd the rate is that of a vector which has grown as its output (4 times, the hidden layer 2), and of a
	// branch that counts for half: its gradient is half as large, and so must its step be.
	x.m.ScaleRates(Gradient)
	for name, want := range map[string]float64{
		"attention.qkv.bias": 4, "mlp.up.bias": 2, "mlp.down.bias": 4 / 4., "attention.out.bias": 4 / 4.,
		"mlp_norm.bias": 4, "mlp_norm": 4,
	} {
		for _, p := range x.m.Params() {
			if p.Name == "layers.1."+name && p.LRScale != want {
				t.Errorf("with sgd %s has the rate %v, want %v", p.Name, p.LRScale, want)
			}
		}
	}
}

// The published count of GPT-2, whose head is the embedding.
func TestParametersOfGPT2(t *testing.T) {
	for _, k := range []struct {
		name               string
		layers, dim, heads int
		want               int64
	}{
		{"gpt2", 12, 768, 12, 124_439_808},
		{"gpt2-medium", 24, 1024, 16, 354_823_168},
		{"gpt2-xl", 48, 1600, 25, 1_557_611_200},
	} {
		m := Outline(Config{
			Family: "gpt2", Positions: schemes("learned"), Layers: k.layers, Dim: k.dim, Heads: k.heads,
			KVHeads: k.heads, HeadDim: k.dim / k.heads, FFN: 4 * k.dim, Context: 1024, Vocab: 50257,
			TieEmbeddings: true,
		}, precision.Policy{})
		if m.Count() != k.want {
			t.Errorf("%s: %d parameters, want %d", k.name, m.Count(), k.want)
		}
		// Two matrices of 4·D in place of Llama's three.
		d := float64(k.dim)
		forward := float64(k.layers)*(2*12*d*d+2*1024*d) + 2*d*50257
		if got := m.FLOPsPerToken(1024); math.Abs(got-3*forward) > 1e-9*got {
			t.Errorf("%s: %g FLOPs per token, product by product %g", k.name, got, 3*forward)
		}
	}
}
