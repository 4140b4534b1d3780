package model

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// recipe is the family anneal with all that it has, at the smallest size; its weights are not zero, as they are at the
// start, so that everything counts.
var recipe = func() Config {
	c := small
	c.Family, c.Layers = "anneal", 3
	c.QKNorm, c.Activation, c.ValueEmbeddings, c.X0Skip, c.LogitSoftcap = true, "relu2", "alternate", true, 4
	return c
}()

// Logits, loss and every gradient are those of the same model written in PyTorch (testdata/make_anneal.py), in float64.
func TestAnnealIsThatOfPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/anneal.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Tokens, Targets [][]int32
		Loss            float64
		Logits          []float64
		Grads           []struct {
			Name string
			Grad []float64
		}
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	c := recipe
	c.Dim, c.FFN, c.Context, c.Vocab = 12, 20, 10, 13
	tokens := len(want.Tokens[0])
	x := newBench(t, c, "fp64", len(want.Tokens), tokens)
	for r := range want.Tokens {
		copy(x.b.Tokens.I32()[r*tokens:], want.Tokens[r])
		copy(x.b.Targets.I32()[r*tokens:], want.Targets[r])
		for i := range tokens {
			x.b.Start.I32()[r*tokens+i] = 0
			if i >= 4 {
				x.b.Start.I32()[r*tokens+i] = 4
			}
		}
	}
	x.b.SetPositions(true)
	params := x.m.Params()
	if len(params) != len(want.Grads) {
		t.Fatalf("%d parameters, want %d", len(params), len(want.Grads))
	}
	for n, p := range params {
		offset := 0.0
		if p.Role == nn.Norm {
			offset = 1
		}
		for i := range p.Value.F64() {
			p.Value.F64()[i] = math.Round(300*math.Sin(0.7*float64(i)+1.3*float64(n)))/1000 + offset
		}
	}
	equal := func(name string, got, want []float64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s has %d elements, want %d", name, len(got), len(want))
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-10*(1+math.Abs(want[i])) {
				t.Fatalf("%s[%d] = %v, PyTorch has %v", name, i, got[i], want[i])
			}
		}
	}
	x.gradients()
	equal("loss", []float64{x.dev.Sum(&x.b.Losses)}, []float64{want.Loss})
	for n, p := range params {
		if p.Name != want.Grads[n].Name {
			t.Fatalf("parameter %d is %s, want %s", n, p.Name, want.Grads[n].Name)
		}
		equal("the gradient of "+p.Name, p.Grad.F64(), want.Grads[n].Grad)
	}
	x.tape.Reset(false)
	equal("logits", x.m.Logits(x.tape, x.b, 0, len(want.Tokens)*tokens).F64(), want.Logits)
}

// Central differences in float64 through the whole model, for coordinates of every parameter.
func TestAnnealGradientsMatchFiniteDifferences(t *testing.T) {
	for _, variant := range []struct {
		name   string
		change func(*Config)
	}{
		{"recipe", func(*Config) {}},
		{"values in all layers, gated", func(c *Config) { c.ValueEmbeddings, c.Activation = "all", "swiglu" }},
		{"no values, no skip", func(c *Config) { c.ValueEmbeddings, c.X0Skip = "none", false }},
	} {
		c := recipe
		variant.change(&c)
		x := newBench(t, c, "fp64", 2, 8)
		x.gradients()
		const eps = 1e-5
		for i, p := range x.m.Params() {
			w, g := p.Value.F64(), p.Grad.F64()
			rng := tensor.NewRNG(3, tensor.PurposeData, uint32(i))
			for n := range uint64(6) {
				j := int(rng.Uint32(n)) % len(w)
				at := w[j]
				w[j] = at + eps
				up := x.loss()
				w[j] = at - eps
				down := x.loss()
				w[j] = at
				if want := (up - down) / (2 * eps); math.Abs(g[j]-want) > 1e-6*(1+math.Abs(want)) {
					t.Errorf("%s: %s[%d]: gradient %v, finite difference %v", variant.name, p.Name, j, g[j], want)
				}
			}
		}
	}
}

// The recipe with nothing of its own switched on computes what a Llama of the same weights does, bit for bit.
func TestAnnealWithoutItsOwnIsALlama(t *testing.T) {
	c := recipe
	c.Activation, c.ValueEmbeddings, c.X0Skip = "swiglu", "none", false
	x := newBench(t, c, "bf16", 2, 8)
	c.Family = "llama"
	y := newBench(t, c, "bf16", 2, 8)
	if !bytes.Equal(x.bits(), y.bits()) {
		t.Error("losses or gradients differ")
	}
}

func TestAnnealFootprintIsExactAndStepsAllocateNothing(t *testing.T) {
	for _, policy := range precision.Names() {
		x := newBench(t, recipe, policy, 3, 8)
		x.gradients()
		if got := x.peaks(); got != x.foot {
			t.Errorf("%s: a step used %+v, measured %+v", policy, got, x.foot)
		}
		if n := testing.AllocsPerRun(3, x.gradients); n != 0 {
			t.Errorf("%s: %v allocations per forward and backward pass", policy, n)
		}
	}
}

// Gradients keep their bits whatever runs again, branches that are dropped included; losses keep theirs without a tape.
func TestAnnealRecomputesTheSameBits(t *testing.T) {
	for _, policy := range precision.Names() {
		for _, depth := range []float64{0, 0.6} {
			c := recipe
			c.Layers, c.StochasticDepth = 5, depth
			plain := newBench(t, c, policy, 2, 8)
			plain.b.Seq.Noise = noise(1)
			want := plain.bits()
			for _, l := range []Layout{{Whole: 4, Segment: 1}, {Whole: 3, Segment: 3}, {Attention: 5}, {Whole: 2, Segment: 2, Attention: 2}} {
				c.Recompute = l
				x := newBench(t, c, policy, 2, 8)
				x.b.Seq.Noise = noise(1)
				if !bytes.Equal(x.bits(), want) {
					t.Errorf("%s, depth %v: %+v gives other bits than none", policy, depth, l)
				}
				if p, err := precision.Lookup(policy); err != nil || depth == 0 && newKeepCost(c, p, 2, 8).peak(l, c.Layers) != x.foot.Keep {
					t.Errorf("%s: %+v is taken to keep %d bytes, it keeps %d", policy, l, newKeepCost(c, p, 2, 8).peak(l, c.Layers), x.foot.Keep)
				}
			}
		}
		x := newBench(t, recipe, policy, 2, 8)
		x.gradients()
		recorded := bytes.Clone(x.b.Losses.Raw())
		if x.loss(); !bytes.Equal(x.b.Losses.Raw(), recorded) {
			t.Errorf("%s: losses without recording differ from those with", policy)
		}
	}
}

// Value embeddings stand in every second layer and the last, the skip in all; its scalars start as told and are no matrices.
func TestAnnealLayersHaveWhatTheRecipeSays(t *testing.T) {
	for layers, values := range map[int][]int{1: {0}, 4: {1, 3}, 5: {0, 2, 4}} {
		c := recipe
		c.Layers, c.ZeroInit = layers, "residual"
		x := newBench(t, c, "fp32", 1, 8)
		got := map[string]*nn.Param{}
		for _, p := range x.m.Params() {
			got[p.Name] = p
		}
		count := 0
		for i := range layers {
			at := "layers." + string(rune('0'+i)) + "."
			if p := got[at+"mix"]; p == nil || p.Role != nn.Scalar || p.Value.Len() != 2 || p.Value.Float64(0) != 1 {
				t.Errorf("%d layers: %smix is %+v", layers, at, p)
			}
			if got[at+"mlp.up"] == nil || got[at+"mlp.gate_up"] != nil {
				t.Errorf("%d layers: layer %d is gated", layers, i)
			}
			if got[at+"attention.values"] != nil {
				count++
			}
			for _, zero := range []string{"attention.out", "mlp.down"} {
				if n := x.dev.SumSquares(&got[at+zero].Value); n != 0 {
					t.Errorf("%s%s starts with the norm² %v", at, zero, n)
				}
			}
		}
		for _, i := range values {
			p := got["layers."+string(rune('0'+i))+".attention.values"]
			if p == nil || p.Role != nn.Embedding || p.Value.Dim(0) != c.Vocab || p.Value.Dim(1) != c.KVHeads*c.HeadDim {
				t.Errorf("%d layers: the values of layer %d are %+v", layers, i, p)
			}
		}
		if count != len(values) {
			t.Errorf("%d layers: %d tables of values, want %d", layers, count, len(values))
		}
	}
}
