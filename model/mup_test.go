package model

import (
	"math"
	"strings"
	"testing"

	"anneal/internal/filetest"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// grown is four times as wide as its base, with heads of twice the size and a feed-forward layer three times as wide.
func grown() Config {
	c := wide
	c.QKNorm = true
	setMuP(&c, 16, 8, 160/5, 0, 1, 1)
	return c
}

// The table of the package: what each parameter starts with and how its rate and decay are scaled, by hand, for every
// rule.
func TestMuPTable(t *testing.T) {
	const m, ffn, head = 4.0, 5.0, 2.0 // of grown
	type scales struct{ std, adam, sgd, muon float64 }
	want := map[string]scales{
		"embed": {0.02, 1, m, 1}, "head": {0.02, 1, m, 1}, "norm": {0, 1, m, 1},
		"attention_norm": {0, 1, m, 1}, "mlp_norm": {0, 1, m, 1}, "q_norm": {0, 1, head, 1}, "k_norm": {0, 1, head, 1},
		"qkv": {0.02 / 2, 1 / m, 1, 1}, "out": {0.02 / math.Sqrt(8) / 2, 1 / m, 1, 1},
		"gate_up": {0.02 / 2, 1 / m, ffn / m, 1}, "down": {0.02 / math.Sqrt(8) / math.Sqrt(ffn), 1 / ffn, m / ffn, 1},
	}
	model := New(grown(), Memory{Params: tensor.NewMeasure("parameters"), DType: tensor.F32})
	for _, p := range model.Params() {
		w, ok := want[p.Name[strings.LastIndexByte(p.Name, '.')+1:]]
		if !ok {
			t.Errorf("%s is not in the table", p.Name)
		}
		std := p.Std
		if p.Parts != nil {
			std = p.Parts[0].Std
		}
		if math.Abs(std-w.std) > 1e-15 {
			t.Errorf("%s starts with std %v, want %v", p.Name, std, w.std)
		}
		for rule, lr := range map[UpdateRule]float64{PerElement: w.adam, Gradient: w.sgd, Spectral: w.muon} {
			model.ScaleRates(rule)
			if math.Abs(p.LRScale-lr) > 1e-15 || math.Abs(p.LRScale*p.DecayScale-1) > 1e-15 {
				t.Errorf("%s, rule %d: rate × %v, decay × %v; want × %v and its inverse",
					p.Name, rule, p.LRScale, p.DecayScale, lr)
			}
		}
	}
	c := grown()
	if got, want := c.logitScale(), 1/m; got != want {
		t.Errorf("logits × %v, want %v", got, want)
	}
	if got, want := c.heads().ScoreScale(), math.Sqrt(8)/16; got != want {
		t.Errorf("scores × %v, want %v", got, want)
	}
}

// CompleteP: what writes to the residual stream starts m_L times smaller than at the base depth, where it has
// 1/√(2L₀), and is moved m_L times less; for a step that follows the gradient, m_L² times. Nothing else goes by the
// depth.
func TestDepthScaling(t *testing.T) {
	const depth = 2.0 // 4 layers over 2
	shallow, deep := grown(), grown()
	shallow.Layers, deep.MuPBaseLayers = 2, 2
	for _, scheme := range []string{"gpt2", "he", "xavier", "small"} {
		shallow.Init, deep.Init = scheme, scheme
		a, b := New(shallow, Memory{Params: tensor.NewMeasure("parameters"), DType: tensor.F32}),
			New(deep, Memory{Params: tensor.NewMeasure("parameters"), DType: tensor.F32})
		for rule, power := range map[UpdateRule]float64{PerElement: 1, Gradient: 2, Spectral: 1} {
			a.ScaleRates(rule)
			b.ScaleRates(rule)
			for _, p := range b.blocks[3].params {
				for _, q := range a.blocks[1].params {
					if p.Name[len("layers.3."):] != q.Name[len("layers.1."):] {
						continue
					}
					std, rate := 1.0, 1.0
					if p == b.blocks[3].attention.wo || p == b.blocks[3].branches[1].out {
						std, rate = 1/depth, math.Pow(1/depth, power)
					}
					eps := 0.0 // as it is
					if p.Role == nn.Matrix {
						eps = 1 / depth / p.Growth.In
						if std != 1 {
							eps = 1 / p.Growth.In
						}
					}
					if math.Abs(p.EpsScale-eps) > 1e-15 || q.EpsScale != 0 {
						t.Errorf("%s: ε × %v, want × %v; at the base depth × %v", p.Name, p.EpsScale, eps, q.EpsScale)
					}
					if math.Abs(p.Std-std*q.Std) > 1e-15 || math.Abs(p.LRScale-rate*q.LRScale) > 1e-15 {
						t.Errorf("%s, rule %d: %s has std %v, rate × %v; at the base depth %v and %v",
							scheme, rule, p.Name, p.Std, p.LRScale, q.Std, q.LRScale)
					}
				}
			}
		}
	}
}

// Schemes that go by the width themselves have under muP what they have without; tables stay as in the base model.
func TestWidthAwareSchemesUnderMuP(t *testing.T) {
	for _, scheme := range []string{"he", "xavier", "small"} {
		c := grown()
		c.Init = scheme
		for _, s := range []site{inner, output} {
			plain := c
			plain.MuP = false
			if got, want := c.std(s, 160, 64, nn.Growth{In: 4, Out: 4, Depth: 1}),
				plain.std(s, 160, 64, nn.Growth{In: 1, Out: 1, Depth: 1}); got != want {
				t.Errorf("%s: a matrix starts with std %v under muP, %v without", scheme, got, want)
			}
		}
	}
	c := grown()
	c.Init = "small"
	if got, want := c.std(table, 256, 64, nn.Growth{In: 1, Out: 4, Depth: 1}), math.Sqrt(2/(5*16.)); got != want {
		t.Errorf("small: tables start with std %v, want %v of the base width", got, want)
	}
}

// A model without muP, with the multipliers in its weights, computes the same: what an export relies on.
func TestMultipliersFoldIntoWeights(t *testing.T) {
	for _, tied := range []bool{false, true} {
		for _, kind := range []string{"llama", "llama with QK-norm", "gpt2"} {
			c := grown()
			c.TieEmbeddings, c.QKNorm, c.InitStd = tied, kind == "llama with QK-norm", 0.2
			if kind == "gpt2" {
				c.Family, c.Positions, c.KVHeads = "gpt2", schemes("learned"), c.Heads
			}
			c.MuPInputScale, c.MuPOutputScale = 3, 0.7
			x := newBench(t, c, "fp64", 2, 16)
			c.MuP = false
			y := newBench(t, c, "fp64", 2, 16)
			for i, p := range x.m.Params() { // gains are not all 1, and biases not 0
				if rng := tensor.NewRNG(7, tensor.PurposeData, uint32(i)); p.Value.Rank() == 1 {
					for j := range p.Value.Len() {
						p.Value.SetFloat64(j, 0.5+float64(rng.Uint32(uint64(j)))/(1<<32))
					}
				}
			}
			plain := y.m.HFViews()
			for i, v := range x.m.HFViews() {
				for j := range v.Tensor.Len() {
					plain[i].Tensor.SetFloat64(plain[i].index(j), v.value(&v.Tensor, j))
				}
			}
			x.loss()
			y.loss()
			for i, got := range y.b.Losses.F64() {
				if want := x.b.Losses.F64()[i]; math.Abs(got-want) > 1e-12*(1+want) {
					t.Fatalf("%s, tied %v: token %d has loss %v, with muP %v", kind, tied, i, got, want)
				}
			}
		}
	}
}

// The multipliers cost what Measure says, and nothing on the Go heap.
func TestMultipliersAreMeasuredAndAllocateNothing(t *testing.T) {
	c := grown()
	c.MuPInputScale = 2
	for _, policy := range precision.Names() {
		x := newBench(t, c, policy, 2, 8)
		x.gradients()
		if got := x.peaks(); got != x.foot {
			t.Errorf("%s: a step used %+v, measured %+v", policy, got, x.foot)
		}
		if n := filetest.AllocsPerRun(5, x.gradients); n != 0 && policy != "fp64" {
			t.Errorf("%s: %v allocations per step", policy, n)
		}
	}
}
