package model

import (
	"math"
	"testing"

	"anneal/precision"
)

// projected is a small model with projections of their own for global tokens in every second layer.
var projected = func() Config {
	c := small
	c.Attention, c.LongformerGlobalProjections = seen("longformer:2:3:dilation=2:heads=1,window:4"), true
	return c
}()

// With the weights of the shared projections, projections of their own change nothing: neither loss nor logits, and the
// gradients of both together are those of a model without them.
func TestGlobalProjectionsLikeTheSharedOnesChangeNothing(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"rope":    func(*Config) {},
		"alibi":   func(c *Config) { c.Positions = schemes("alibi") },
		"qk-norm": func(c *Config) { c.QKNorm = true },
		"biases":  func(c *Config) { c.QKVBias = true },
		"gpt2":    func(c *Config) { c.Family, c.Positions = "gpt2", schemes("learned") },
		"softcap": func(c *Config) { c.AttentionSoftcap = 2 },
		"olmo2":   func(c *Config) { c.Family, c.KVHeads, c.QKNorm = "olmo2", c.Heads, true },
	} {
		t.Run(name, func(t *testing.T) {
			c := projected
			change(&c)
			own := newBench(t, c, "fp64", 2, 8)
			c.LongformerGlobalProjections = false
			shared := newBench(t, c, "fp64", 2, 8)
			of := func(x *bench, name string) (value, grad []float64) {
				for _, p := range x.m.Params() {
					if p.Name == name {
						return p.Value.F64(), p.Grad.F64()
					}
				}
				t.Fatalf("no parameter %s", name)
				return nil, nil
			}
			const global, local = "layers.0.attention.global_qkv", "layers.0.attention.qkv"
			endings := []string{""}
			if c.biased() || c.QKVBias {
				endings = append(endings, ".bias")
			}
			for _, p := range shared.m.Params() {
				value, _ := of(own, p.Name)
				copy(value, p.Value.F64())
			}
			for _, end := range endings {
				to, _ := of(own, global+end)
				from, _ := of(own, local+end)
				copy(to, from)
			}
			own.gradients()
			shared.gradients()
			for _, end := range endings {
				_, sum := of(own, local+end)
				_, part := of(own, global+end)
				moved := 0.0
				for i := range sum {
					sum[i] += part[i]
					moved += math.Abs(part[i])
				}
				if moved == 0 {
					t.Errorf("%s has no gradient", global+end)
				}
			}
			for _, p := range shared.m.Params() {
				_, got := of(own, p.Name)
				for i, want := range p.Grad.F64() {
					if math.Abs(got[i]-want) > 1e-11*(1+math.Abs(want)) {
						t.Fatalf("gradient %d of %s is %v, without projections of their own %v",
							i, p.Name, got[i], want)
					}
				}
			}
			if got, want := own.loss(), shared.loss(); math.Abs(got-want) > 1e-12*want {
				t.Errorf("the loss is %v, without projections of their own %v", got, want)
			}
		})
	}
}

func TestGradientsOfGlobalProjectionsMatchFiniteDifferences(t *testing.T) {
	for name, recompute := range map[string]Layout{"kept": {}, "recomputed": {Whole: 1, Segment: 1, Attention: 1}} {
		t.Run(name, func(t *testing.T) {
			c := projected
			c.Recompute = recompute
			setMuP(&c, 4, 2, 12, 0, 1.5, 3)
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
	}
}

func TestGlobalProjectionsKeepTheirBitsAndFootprint(t *testing.T) {
	checkFootprint(t, projected)
	for _, policy := range precision.Names() {
		c := projected
		c.Layers, c.Attention = 5, seen("longformer:2:3:dilation=2:heads=1")
		checkRecomputation(t, c, policy)
		checkLossesWithoutTape(t, projected, policy)
	}
}

// A layer has D·(H+2K)·E parameters more, of which a token of the row uses G/T on average. Counted operation by
// operation, G tokens of a row multiply with them, and attend to each other.
func TestFLOPsOfGlobalProjectionsCountEachProduct(t *testing.T) {
	c := outline(3, 64, 4, 2, 192, 32, 100, false).Config
	c.Attention = seen("longformer:8:6")
	shared := Outline(c, precision.Policy{})
	c.LongformerGlobalProjections = true
	own := Outline(c, precision.Policy{})
	const weights = 64 * (4 + 2*2) * 16
	if got, want := own.Count()-shared.Count(), int64(3*weights); got != want {
		t.Errorf("%d parameters more, want %d", got, want)
	}
	more := 3 * 3 * (2*weights*6 + 4*(6*7/2)*4*16) / 32.0
	if got := own.FLOPsPerToken(32) - shared.FLOPsPerToken(32); math.Abs(got-more) > 1e-6*more {
		t.Errorf("%g FLOPs per token more, want %g", got, more)
	}
	x, y := newBench(t, c, "fp32", 2, 32), newBench(t, shared.Config, "fp32", 2, 32)
	start := x.b.Host.Start
	clear(start)
	clear(y.b.Host.Start)
	if got := x.m.BatchFLOPs(x.b) - y.m.BatchFLOPs(y.b); math.Abs(got-64*more) > 1e-6*got {
		t.Errorf("%g FLOPs per batch more, want %g", got, 64*more)
	}
}
