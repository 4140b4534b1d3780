package model

import (
	"math"
	"strings"
	"testing"

	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// wide is a layout in which no two sizes are equal, so that a mistaken side of a matrix shows.
var wide = Config{
	Layers: 4, Dim: 64, Heads: 6, KVHeads: 2, HeadDim: 16, FFN: 160, Context: 32, Vocab: 256,
	RopeTheta: 10000, NormEps: 1e-5, InitStd: 0.02,
}

// initialStds are the deviations that each scheme promises for wide, by name of the weight, as the papers write them.
var initialStds = map[string]map[string]float64{
	"gpt2": {
		"embed": 0.02, "head": 0.02, "q": 0.02, "k": 0.02, "v": 0.02, "gate": 0.02, "up": 0.02,
		"out": 0.02 / math.Sqrt(8), "down": 0.02 / math.Sqrt(8),
	},
	"he": {
		"embed": 0.02, "head": 0.02, "q": math.Sqrt(2. / 64), "k": math.Sqrt(2. / 64), "v": math.Sqrt(2. / 64),
		"gate": math.Sqrt(2. / 64), "up": math.Sqrt(2. / 64), "out": math.Sqrt(2. / 96), "down": math.Sqrt(2. / 160),
	},
	"xavier": {
		"embed": 0.02, "head": 0.02, "q": math.Sqrt(2. / (64 + 96)), "k": math.Sqrt(2. / (64 + 32)),
		"v": math.Sqrt(2. / (64 + 32)), "gate": math.Sqrt(2. / (64 + 160)), "up": math.Sqrt(2. / (64 + 160)),
		"out": math.Sqrt(2. / (96 + 64)), "down": math.Sqrt(2. / (160 + 64)),
	},
	"small": {
		"embed": math.Sqrt(2. / 320), "head": math.Sqrt(2. / 320), "q": math.Sqrt(2. / 320), "k": math.Sqrt(2. / 320),
		"v": math.Sqrt(2. / 320), "gate": math.Sqrt(2. / 320), "up": math.Sqrt(2. / 320), "out": 2. / (4 * 8),
		"down": 2. / (4 * 8),
	},
}

// eachWeight calls f for every weight of the model, the parts of fused ones by themselves, with the last word of its
// name.
func eachWeight(m *Decoder, f func(name string, values []float32)) {
	for _, p := range m.Params() {
		if p.Parts == nil {
			f(p.Name[strings.LastIndexByte(p.Name, '.')+1:], p.Value.F32())
			continue
		}
		row := 0
		for _, part := range p.Parts {
			x := p.Value.Slice(row, row+part.Rows)
			f(part.Name, x.F32())
			row += part.Rows
		}
	}
}

// INIT-2: the deviation of every weight is what its scheme says, within what chance allows a sample.
func TestInitialStdPerTensor(t *testing.T) {
	for scheme, want := range initialStds {
		for _, zero := range []string{"none", "residual", "head", "both"} {
			c := wide
			c.Init, c.ZeroInit = scheme, zero
			x := newBench(t, c, "fp32", 1, 8)
			seen := 0
			eachWeight(x.m, func(name string, values []float32) {
				if strings.HasSuffix(name, "norm") {
					for _, v := range values {
						if v != 1 {
							t.Fatalf("%s: a gain starts at %v", name, v)
						}
					}
					return
				}
				std := want[name]
				if (zero == "residual" || zero == "both") && (name == "out" || name == "down") ||
					(zero == "head" || zero == "both") && name == "head" {
					std = 0
				}
				seen++
				sum, n := 0.0, float64(len(values))
				for _, v := range values {
					sum += float64(v) * float64(v)
				}
				// The deviation of a sample has a relative error of 1/√(2n).
				if got := math.Sqrt(sum / n); math.Abs(got-std) > 5*std/math.Sqrt(2*n) {
					t.Errorf("%s, zero_init %s: %s has std %.5f, want %.5f", scheme, zero, name, got, std)
				}
			})
			if want := 2 + 7*c.Layers; seen != want {
				t.Errorf("%s: %d weights, want %d", scheme, seen, want)
			}
		}
	}
}

// A tied table serves two ends and starts as the embedding does.
func TestTiedTableStartsAsTheEmbedding(t *testing.T) {
	for scheme, want := range initialStds {
		c := wide
		c.Init, c.TieEmbeddings = scheme, true
		m := New(c, Memory{Params: tensor.NewMeasure("parameters"), DType: tensor.F32})
		if m.head != m.embed || m.embed.Std != want["embed"] {
			t.Errorf("%s: the tied table has std %v, want %v", scheme, m.embed.Std, want["embed"])
		}
	}
}

// INIT-1: the loss of a fresh model is ln V plus half the variance dσ² of its logits, of which the head's deviation σ
// decides.
func TestInitialLossIsTheEntropyOfTheVocabulary(t *testing.T) {
	for _, k := range []struct {
		scheme, zero string
		tied         bool
		std          float64 // of the head
		within       float64
	}{
		{"gpt2", "none", true, 0.02, 0.05},
		{"gpt2", "none", false, 0.02, 0.05},
		{"he", "none", false, 0.02, 0.05},
		{"xavier", "residual", false, 0.02, 0.05},
		{"small", "none", false, math.Sqrt(2. / 320), 0.05},
		{"gpt2", "head", false, 0, 1e-6},
		{"he", "both", false, 0, 1e-6},
	} {
		c := wide
		c.Init, c.ZeroInit, c.TieEmbeddings = k.scheme, k.zero, k.tied
		x := newBench(t, c, "fp32", 8, 32)
		got := x.loss() / float64(8*32-1)
		want := math.Log(256) + 64*k.std*k.std/2
		if math.Abs(got-want) > k.within {
			t.Errorf("%s, zero_init %s, tied %v: initial loss %v, want %v", k.scheme, k.zero, k.tied, got, want)
		}
	}
}

// INIT-2: what the blocks add to the residual stream has a variance that does not grow with depth where their outputs
// are scaled for it, grows like the depth where they are not, and is nothing where they start at zero.
func TestResidualVarianceOverDepth(t *testing.T) {
	added := func(layers int, scheme, zero string) float64 {
		c := wide
		c.Layers, c.Init, c.ZeroInit = layers, scheme, zero
		c.InitStd = 0.12 // 1/√D: every matrix keeps the size of what it reads
		x := newBench(t, c, "fp32", 4, 32)
		x.tape.Reset(false)
		v := x.tape.Embedding(&x.m.embed.Param, &x.b.Tokens)
		before := append([]float32(nil), v.Value.F32()...)
		for _, b := range x.m.blocks {
			v = x.tape.Block(b, v, &x.b.Seq)
		}
		sum := 0.0
		for i, after := range v.Value.F32() {
			sum += math.Pow(float64(after-before[i]), 2)
		}
		return sum / float64(len(before))
	}
	for scheme, scaled := range map[string]bool{"gpt2": true, "small": true, "he": false, "xavier": false} {
		shallow, deep := added(2, scheme, "none"), added(16, scheme, "none")
		growth := deep / shallow
		if scaled && growth > 3 || !scaled && !(growth > 4 && growth < 16) {
			t.Errorf("%s: 16 layers add %.2f times the variance of 2 layers, depth-scaled %v", scheme, growth, scaled)
		}
	}
	if v := added(4, "he", "residual"); v != 0 {
		t.Errorf("with zero_init=residual blocks add a variance of %v", v)
	}
}

// A head or residual outputs at zero get gradients from the first step: nothing is dead.
func TestZeroInitLearns(t *testing.T) {
	for _, zero := range []string{"residual", "head"} {
		c := small
		c.ZeroInit, c.TieEmbeddings = zero, false
		x := newBench(t, c, "fp64", 2, 8)
		x.gradients()
		for _, p := range x.m.Params() {
			std := p.Std
			if p.Parts != nil {
				std = p.Parts[0].Std
			}
			if p.Role == nn.Norm || std != 0 {
				continue
			}
			if norm := new(device.Squares).Sum(x.dev, &p.Grad); !(norm > 0) {
				t.Errorf("zero_init %s: %s starts at zero and its gradient is zero", zero, p.Name)
			}
		}
	}
}
