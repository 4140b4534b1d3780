package flash

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/internal/filetest"
	"anneal/internal/isa"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// glaAlpha is the gate of a logit.
func glaAlpha(a float64) float64 { return math.Pow(sigmoid(math.Max(a, glaLeast)), 1./16) }

// vectorGates computes the outputs of gates per dimension, before their norm, in float64: by the recurrence, and as
// the sum over all pairs of a query and a key.
func (p *linearProblem) vectorGates() (recurrent, quadratic []float64) {
	h, x, g := p.heads, values(p.qkv), p.gateValues()
	e, tokens := h.Size, p.batch*p.length
	recurrent, quadratic = make([]float64, tokens*h.Q*e), make([]float64, tokens*h.Q*e)
	for head := range h.Q {
		kv := head * h.KV / h.Q
		column := func(n, first int) []float64 { return x[n*h.Cols()+first*e:][:e] }
		alpha := func(n, c int) float64 { return glaAlpha(g[(n*h.KV+kv)*e+c]) }
		state, begin := make([]float64, e*e), 0
		for n := range tokens {
			if n%p.length == 0 || p.starts() != nil && int(p.starts()[n]) == n%p.length {
				clear(state)
				begin = n
			}
			q, k, v := column(n, head), column(n, h.Q+kv), column(n, h.Q+h.KV+kv)
			out, pairs := recurrent[(n*h.Q+head)*e:][:e], quadratic[(n*h.Q+head)*e:][:e]
			for c := range e {
				for d := range e {
					state[c*e+d] = alpha(n, c)*state[c*e+d] + k[c]*v[d]
					out[d] += q[c] / math.Sqrt(float64(e)) * state[c*e+d]
				}
				fade := 1.0
				for s := n; s >= begin; s-- {
					for d := range e {
						score := q[c] / math.Sqrt(float64(e)) * fade * column(s, h.Q+kv)[c]
						pairs[d] += score * column(s, h.Q+h.KV+kv)[d]
					}
					fade *= alpha(s, c)
				}
			}
		}
	}
	return recurrent, quadratic
}

// In float64 the recurrence, chunks of any size and the quadratic form of gates per dimension are the same function.
func TestVectorGatesRecurrentChunkedAndQuadraticAgree(t *testing.T) {
	l := newLinear(t, isa.Generic, 1)
	rapid.Check(t, func(rt *rapid.T) {
		p := drawLinear(rt, tensor.F64)
		p.heads.Rule, p.heads.Size = device.VectorGateRule, min(p.heads.Size, 8)
		p = newLinearProblem(tensor.F64, p.batch, p.length, p.heads, p.starts(), true, rapid.Uint64().Draw(rt, "seed"))
		l.f64.chunk = rapid.SampledFrom([]int{1, 7, 16, 64}).Draw(rt, "C")
		l.Forward(p.out, p.norm, p.qkv, p.gates, p.heads, p.mask)
		h, got, norm := p.heads, values(p.out), values(p.norm)
		recurrent, quadratic := p.vectorGates()
		for i, x := range recurrent {
			n, head := i/(h.Q*h.Size), i/h.Size%h.Q
			far := math.Abs(got[i]*norm[head*p.batch*p.length+n] - x)
			if apart := math.Abs(quadratic[i] - x); !(far <= 1e-12*(1+math.Abs(x)) && apart <= 1e-12*(1+math.Abs(x))) {
				rt.Fatalf("C = %d: token %d of head %d is off by %.3g from the recurrence, the quadratic form by %.3g",
					l.f64.chunk, n, head, far, apart)
			}
		}
		// gradients with one chunk per token equal those with other chunks
		p.run(l)
		dqkv, dgates := values(p.dqkv), values(p.dgates)
		l.f64.chunk = 1
		p.run(l)
		top := 1.0
		for _, x := range append(dqkv, dgates...) {
			top = math.Max(top, math.Abs(x))
		}
		if far := math.Max(farthest(values(p.dqkv), dqkv), farthest(values(p.dgates), dgates)); !(far <= 1e-11*top) {
			rt.Fatalf("gradients are off by %.3g, with values to %.3g", far, top)
		}
	})
}

// Gates that close for whole chunks, in F32 on every tier, are as exact as open ones: no factor overflows.
func TestClosedVectorGatesForget(t *testing.T) {
	heads := device.Heads{Q: 4, KV: 2, Size: 40, Rule: device.VectorGateRule}
	problem := func(dt tensor.DType) *linearProblem {
		p := newLinearProblem(dt, 1, 200, heads, nil, true, 7)
		for i := range p.gates.Len() {
			if c := i % heads.Size; c < 20 {
				p.gates.SetFloat64(i, float64(-10*(c%10)))
			}
		}
		return p
	}
	exact := problem(tensor.F64)
	exact.run(newLinear(t, isa.Generic, 1))
	for _, tier := range isa.Tiers() {
		p := problem(tensor.F32)
		p.run(newLinear(t, tier, 1))
		for name, pair := range map[string][2]*tensor.Tensor{
			"out": {p.out, exact.out}, "dqkv": {p.dqkv, exact.dqkv}, "dgates": {p.dgates, exact.dgates},
		} {
			want, top := values(pair[1]), 0.0
			for _, x := range want {
				top = math.Max(top, math.Abs(x))
			}
			if far := farthest(values(pair[0]), want); !(far < 2e-5*top) {
				t.Errorf("%v: %s is off by %v, with values to %v", tier, name, far, top)
			}
		}
	}
}

// The scratch memory equals its prediction, for any length.
func TestVectorGatesScratchIsPredicted(t *testing.T) {
	heads := device.Heads{Q: 2, KV: 1, Size: 32, Rule: device.VectorGateRule}
	for _, length := range []int{1, 65, 1000} {
		l := newLinear(t, isa.Tiers()[0], 2)
		p := newLinearProblem(tensor.BF16, 1, length, heads, nil, true, 1)
		p.run(l)
		if got, want := l.ScratchBytes(), LinearScratch(isa.Tiers()[0], 2, tensor.BF16, length, heads); got != want {
			t.Errorf("rows of %d take %d bytes, want %d", length, got, want)
		}
		if n := filetest.AllocsPerRun(3, func() { p.run(l) }); n != 0 {
			t.Errorf("a call allocates %v times", n)
		}
	}
}
