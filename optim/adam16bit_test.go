package optim

import (
	"math"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// A step's moments are those of AdamW in FP32 from the moments before, rounded to a neighbour in BF16 by the random
// numbers of the element; its weights have not been rounded.
func TestMomentsAreThoseOfAdamWRounded(t *testing.T) {
	const n, number = 3000, 5
	start, o := values(n), AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
	narrow := newParameter(t, isa.Generic, tensor.F32, &Adam16bit{AdamW: o, Seed: 7}, start)
	wide := newParameter(t, isa.Generic, tensor.F32, o, start)
	narrow.Number = number
	for step := 1; step <= 4; step++ {
		for k := range 2 {
			wide.dev.Copy(&wide.state[k].Tensor, &narrow.state[k].Tensor)
		}
		wide.dev.Copy(&wide.Value, &narrow.Value)
		g, s := times(1+0.1*float64(step), values(n)), Step{T: step, LR: 0.01, Decay: 0.1}
		narrow.step(g, s)
		wide.step(g, s)
		rng := tensor.NewRNG(7, tensor.PurposeMoment, uint32(step))
		for i := range n {
			if narrow.Value.F32()[i] != wide.Value.F32()[i] {
				t.Fatalf("step %d: weight %d is %v, of AdamW %v", step, i, narrow.Value.F32()[i], wide.Value.F32()[i])
			}
			for k := range 2 {
				at := uint64(number)<<40 + uint64(k)<<39 + uint64(i/128*16+i%16)
				word := rng.Block(at)[i%128/32] >> (i % 32 / 16 * 16)
				want := tensor.BF16Stochastic(wide.state[k].F32()[i], word)
				if got := narrow.state[k].BF16()[i]; got != want {
					t.Fatalf("step %d: moment %d of element %d is %v, want %v", step, k, i, got, want)
				}
			}
		}
	}
}

// Under a gradient that becomes a thousand times smaller, a mean of squares falls as in FP32 on average, where rounding
// to nearest would stop it: a step changes it by less than half of the last place.
func TestSecondMomentsDoNotStandStill(t *testing.T) {
	const n, steps = 4096, 2000
	o := AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
	x := newParameter(t, isa.Generic, tensor.F32, &Adam16bit{AdamW: o, Seed: 1}, values(n))
	g := make([]float64, n)
	want := 0.0
	for step := 1; step <= steps; step++ {
		size := 1.0
		if step > steps/2 {
			size = 1e-3
		}
		for i := range g {
			g[i] = size
		}
		want = 0.999*want + 0.001*size*size
		x.step(g, Step{T: step})
	}
	sum := 0.0
	for i := range n {
		v := x.state[1].Float64(i)
		if sum += v; v <= 0 {
			t.Fatalf("v[%d] = %v", i, v)
		}
	}
	if mean := sum / n; math.Abs(mean/want-1) > 5e-3 {
		t.Errorf("after %d steps the mean of v is %v, in FP32 %v", steps, mean, want)
	}
}
