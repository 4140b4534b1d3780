package model

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"anneal/internal/filetest"
	"anneal/precision"
)

// linearConfigs are small models with linear attention in all layers or some.
func linearConfigs() map[string]Config {
	of := func(patterns string) Config {
		c := small
		c.Layers, c.Attention = 3, seen(patterns)
		return c
	}
	muP := of("linear:gated")
	setMuP(&muP, 4, 2, 12, 0, 1.5, 3)
	muP.QKNorm = true
	gpt2 := of("linear:gated")
	gpt2.Family, gpt2.Positions, gpt2.KVHeads = "gpt2", schemes("learned"), gpt2.Heads
	return map[string]Config{
		"linear": of("linear"), "gated": of("linear:gated"), "mixed": of("linear:gated,full"),
		"delta": of("delta"), "gated delta": of("delta:gated"), "all": of("delta:gated,linear,delta"),
		"gla":             of("gla"),
		"mup and qk-norm": muP, "gpt2": gpt2,
	}
}

// Central differences in float64 through whole models, the gates' weights and biases among their parameters.
func TestLinearGradientsMatchFiniteDifferences(t *testing.T) {
	for name, c := range linearConfigs() {
		t.Run(name, func(t *testing.T) {
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
	}
}

// In every precision a step takes what was measured, allocates nothing, and has the same bits whatever runs again.
func TestLinearLayersKeepWhatIsMeasured(t *testing.T) {
	for _, policy := range precision.Names() {
		for name, c := range linearConfigs() {
			c.Layers = 4
			plain := newBench(t, c, policy, 2, 8)
			want := plain.bits()
			if got := plain.peaks(); got != plain.foot {
				t.Errorf("%s, %s: a step used %+v, measured %+v", name, policy, got, plain.foot)
			}
			if n := filetest.AllocsPerRun(2, plain.gradients); n != 0 {
				t.Errorf("%s, %s: %v allocations per forward and backward pass", name, policy, n)
			}
			p, err := precision.Lookup(policy)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range []Layout{{Whole: 3, Segment: 1}, {Attention: 4}, {Whole: 2, Segment: 2, Attention: 1}} {
				c.Recompute = l
				x := newBench(t, c, policy, 2, 8)
				if !bytes.Equal(x.bits(), want) {
					t.Errorf("%s, %s: %+v gives other bits than none", name, policy, l)
				}
				if got := newKeepCost(c, p, 2, 8).peak(l, c.Layers); got < x.foot.Keep ||
					slices.Contains([]string{"gated", "gated delta", "gla"}, name) && got != x.foot.Keep {
					t.Errorf("%s, %s: %+v is taken to keep %d bytes, it keeps %d", name, policy, l, got, x.foot.Keep)
				}
			}
		}
	}
}

// Gates start where retention has its decays, 1 − 2⁻⁵⁻ʰ; a head's h counts to eight.
func TestGatesStartNearOne(t *testing.T) {
	c := small
	c.Heads, c.KVHeads, c.Attention = 10, 10, seen("linear:gated")
	x := newBench(t, c, "fp32", 1, 8)
	for _, p := range x.m.Params() {
		switch p.Name {
		case "layers.0.attention.gate.bias":
			for h := range 10 {
				want := 1 - math.Exp2(float64(-5-h%8))
				if got := 1 / (1 + math.Exp(-p.Value.Float64(h))); math.Abs(got-want) > 1e-6 {
					t.Errorf("the gate of head %d starts at %v, want %v", h, got, want)
				}
			}
			return
		}
	}
	t.Error("no layers.0.attention.gate.bias")
}

// Linear layers have no rotary positions: with those of a model that has only linear layers nothing changes, not even
// its memory.
func TestLinearLayersDoNotRotate(t *testing.T) {
	c := small
	c.Attention = seen("linear")
	rotary := newBench(t, c, "bf16", 2, 8)
	c.Positions = schemes("none")
	without := newBench(t, c, "bf16", 2, 8)
	if !bytes.Equal(rotary.bits(), without.bits()) || rotary.foot != without.foot {
		t.Error("rotary positions change a model of linear layers")
	}
	c.Attention, c.Positions = seen("linear,full"), schemes("")
	if mixed := newBench(t, c, "bf16", 2, 8); mixed.m.blocks[0].attention.rope != nil ||
		mixed.m.blocks[1].attention.rope == nil {
		t.Error("of a linear and a full layer, not just the full one rotates")
	}
}

// The operations of a token, product by product, do not grow with the length of its sequence.
func TestLinearFLOPs(t *testing.T) {
	c := outline(1, 64, 4, 2, 192, 256, 100, false).Config
	full := Outline(c, precision.Policy{})
	c.Attention = seen("linear:gated")
	m := Outline(c, precision.Policy{})
	const e = 16.0
	gate := 2.0 * 64 * 2
	for n, chunk := range map[int]float64{256: 64, 100: 64, 8: 8} {
		// scores and values in chunks; four heads read the state, two write it
		attention := 4*2*2*e*chunk/2 + 4*2*e*e + 2*2*e*e
		want := full.FLOPsPerToken(n) + 3*(gate+attention-2*float64(n)*4*e)
		if got := m.FLOPsPerToken(n); math.Abs(got-want) > 1e-9*want {
			t.Errorf("sequences of %d: %v FLOPs per token, want %v", n, got, want)
		}
	}
}
