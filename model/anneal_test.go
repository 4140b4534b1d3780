package model

import (
	"bytes"
	"math"
	"testing"

	"anneal/device"
	"anneal/nn"
	"anneal/precision"
)

// recipe is the family anneal with all that it has, at the smallest size; its weights are not zero, as they are at the
// start, so that everything counts.
var recipe = func() Config {
	c := small
	c.Family, c.Layers = "anneal", 3
	c.QKNorm, c.Activation, c.ValueEmbeddings, c.X0Skip, c.LogitSoftcap = true, "relu2", "alternate", true, 4
	return c
}()

// Logits, loss and every gradient are those of the same model written in PyTorch (testdata/make_anneal.py), in
// float64.
func TestAnnealIsThatOfPyTorch(t *testing.T) {
	g := readGolden(t, "anneal.json")
	c := recipe
	c.Dim, c.FFN, c.Context, c.Vocab = 12, 20, 10, 13
	x := g.bench(t, c, 4)
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
	g.check(t, x)
}

func TestAnnealGradientsMatchFiniteDifferences(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"recipe":                      func(*Config) {},
		"values in all layers, gated": func(c *Config) { c.ValueEmbeddings, c.Activation = "all", "swiglu" },
		"no values, no skip":          func(c *Config) { c.ValueEmbeddings, c.X0Skip = "none", false },
	} {
		t.Run(name, func(t *testing.T) {
			c := recipe
			change(&c)
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
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
	checkFootprint(t, recipe)
}

// Gradients keep their bits whatever runs again, branches that are dropped included; losses keep theirs without a
// tape.
func TestAnnealRecomputesTheSameBits(t *testing.T) {
	for _, policy := range precision.Names() {
		for _, depth := range []float64{0, 0.6} {
			c := recipe
			c.Layers, c.StochasticDepth = 5, depth
			checkRecomputation(t, c, policy)
		}
		checkLossesWithoutTape(t, recipe, policy)
	}
}

// Value embeddings stand in every second layer and the last, the skip in all; its scalars start as told and are no
// matrices.
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
				if n := new(device.Squares).Sum(x.dev, &got[at+zero].Value); n != 0 {
					t.Errorf("%s%s starts with the norm² %v", at, zero, n)
				}
			}
		}
		for _, i := range values {
			p := got["layers."+string(rune('0'+i))+".attention.values"]
			if p == nil || p.Role != nn.Embedding || p.Value.Dim(0) != c.Vocab ||
				p.Value.Dim(1) != c.KVHeads*c.HeadDim {
				t.Errorf("%d layers: the values of layer %d are %+v", layers, i, p)
			}
		}
		if count != len(values) {
			t.Errorf("%d layers: %d tables of values, want %d", layers, count, len(values))
		}
	}
}
