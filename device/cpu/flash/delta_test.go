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

// deltaHead is the sequence of one head in a document: vectors of unit length, values, and open gates.
type deltaHead struct {
	q, k, v     [][]float64
	beta, alpha []float64
}

// eachDocument calls f with every document and head of a problem of the delta rule. at is the first token's row.
func (p *linearProblem) eachDocument(f func(head, at int, d deltaHead)) {
	h, x, g := p.heads, values(p.qkv), p.gateValues()
	unit := func(x []float64) []float64 {
		sum := 1e-6
		for _, v := range x {
			sum += v * v
		}
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = v / math.Sqrt(sum)
		}
		return y
	}
	for head := range h.Q {
		kv, width := head*h.KV/h.Q, h.GateCols()/h.KV
		var d deltaHead
		for n := range p.batch * p.length {
			row, gates := x[n*h.Cols():][:h.Cols()], g[(n*h.KV+kv)*width:]
			d.q = append(d.q, unit(row[head*h.Size:][:h.Size]))
			d.k = append(d.k, unit(row[(h.Q+kv)*h.Size:][:h.Size]))
			d.v = append(d.v, row[(h.Q+h.KV+kv)*h.Size:][:h.Size])
			d.beta, d.alpha = append(d.beta, sigmoid(gates[0])), append(d.alpha, 1)
			if width == 2 {
				d.alpha[len(d.alpha)-1] = sigmoid(gates[1])
			}
			next := n + 1
			if next%p.length == 0 || p.starts() != nil && int(p.starts()[next]) == next%p.length {
				f(head, next-len(d.q), d)
				d = deltaHead{}
			}
		}
	}
}

// recurrent computes the rule by its definition: with one state, token by token.
func (d deltaHead) recurrent() (out [][]float64) {
	e := len(d.k[0])
	s := make([]float64, e*e) // [values, keys]
	for t := range d.k {
		o := make([]float64, e)
		for i := range e {
			row := s[i*e : (i+1)*e]
			kept := 0.0
			for c := range row {
				row[c] *= d.alpha[t]
				kept += row[c] * d.k[t][c]
			}
			for c := range row {
				row[c] += d.beta[t] * (d.v[t][i] - kept) * d.k[t][c]
				o[i] += row[c] * d.q[t][c]
			}
		}
		out = append(out, o)
	}
	return out
}

// quadratic computes the rule without a state: one triangular system over the document gives all corrected values,
// then outputs follow as in attention.
func (d deltaHead) quadratic() (out [][]float64) {
	var u [][]float64
	add := func(to []float64, x []float64, f float64) {
		for i := range to {
			to[i] += f * x[i]
		}
	}
	product := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	for t := range d.k {
		left := append([]float64(nil), d.v[t]...)
		o, fade := make([]float64, len(left)), 1.0
		for j := t - 1; j >= 0; j-- {
			fade *= d.alpha[j+1]
			add(left, u[j], -fade*product(d.k[t], d.k[j]))
			add(o, u[j], fade*product(d.q[t], d.k[j]))
		}
		for i := range left {
			left[i] *= d.beta[t]
		}
		u = append(u, left)
		add(o, left, product(d.q[t], d.k[t]))
		out = append(out, o)
	}
	return out
}

// In float64 the recurrence, chunks of any size and the quadratic form of the delta rule are the same function.
func TestDeltaRuleRecurrentChunkedAndQuadraticAgree(t *testing.T) {
	l := newLinear(t, isa.Generic, 1)
	rapid.Check(t, func(rt *rapid.T) {
		p := drawLinear(rt, tensor.F64)
		p.heads.Rule = rapid.SampledFrom([]device.LinearRule{device.DeltaRule, device.GatedDeltaRule}).Draw(rt, "rule")
		p = newLinearProblem(tensor.F64, p.batch, p.length, p.heads, p.starts(), true, rapid.Uint64().Draw(rt, "seed"))
		l.f64.chunk = rapid.SampledFrom([]int{1, 7, 16, 64}).Draw(rt, "C")
		l.Forward(p.out, p.norm, p.qkv, p.gates, p.heads, p.mask)
		h, got, norm := p.heads, values(p.out), values(p.norm)
		p.eachDocument(func(head, at int, d deltaHead) {
			other := d.quadratic()
			for i, o := range d.recurrent() {
				square := 0.0
				for _, x := range o {
					square += x * x / float64(h.Size)
				}
				root := math.Sqrt(square + 1e-6)
				if far := math.Abs(norm[head*p.batch*p.length+at+i] - root); far > 1e-12 {
					rt.Fatalf("C = %d: norm of token %d is off by %.3g", l.f64.chunk, at+i, far)
				}
				for c, x := range o {
					far := math.Abs(got[((at+i)*h.Q+head)*h.Size+c]*root - x)
					if apart := math.Abs(other[i][c] - x); !(far <= 1e-12 && apart <= 1e-12) {
						rt.Fatalf("C = %d: token %d of head %d is off by %.3g from the recurrence, the quadratic form "+
							"by %.3g", l.f64.chunk, at+i, head, far, apart)
					}
				}
			}
		})
	})
}

// The gradients for chunks of any size equal those for one chunk per token, whose system has one row.
func TestDeltaGradsDoNotDependOnTheChunks(t *testing.T) {
	l := newLinear(t, isa.Generic, 1)
	rapid.Check(t, func(rt *rapid.T) {
		p := drawLinear(rt, tensor.F64)
		p.heads.Rule = rapid.SampledFrom([]device.LinearRule{device.DeltaRule, device.GatedDeltaRule}).Draw(rt, "rule")
		p = newLinearProblem(tensor.F64, p.batch, p.length, p.heads, p.starts(), true, rapid.Uint64().Draw(rt, "seed"))
		l.f64.chunk = 1
		p.run(l)
		dqkv, dgates := values(p.dqkv), values(p.dgates)
		l.f64.chunk = rapid.SampledFrom([]int{2, 7, 16, 64}).Draw(rt, "C")
		p.run(l)
		top := 1.0
		for _, x := range append(dqkv, dgates...) {
			top = math.Max(top, math.Abs(x))
		}
		if far := math.Max(farthest(values(p.dqkv), dqkv), farthest(values(p.dgates), dgates)); !(far <= 1e-11*top) {
			rt.Fatalf("C = %d: gradients are off by %.3g, with values to %.3g", l.f64.chunk, far, top)
		}
	})
}

// On every tier results in F32 are as close to float64 as their number of terms allows, also with nearly closed gates.
func TestDeltaRuleOnEveryTier(t *testing.T) {
	heads := device.Heads{Q: 4, KV: 2, Size: 40, Rule: device.GatedDeltaRule}
	exact := newLinearProblem(tensor.F64, 1, 300, heads, nil, true, 7)
	closed := func(p *linearProblem) {
		for i := 1; i < p.gates.Len(); i += 14 {
			p.gates.SetFloat64(i, -60)
		}
	}
	closed(exact)
	exact.run(newLinear(t, isa.Generic, 1))
	for _, tier := range isa.Tiers() {
		p := newLinearProblem(tensor.F32, 1, 300, heads, nil, true, 7)
		closed(p)
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

// The backward pass stores a state for every 64 tokens of one row, and its scratch memory is predicted exactly.
func TestDeltaScratchIsPredicted(t *testing.T) {
	heads := device.Heads{Q: 2, KV: 1, Size: 32, Rule: device.GatedDeltaRule}
	for _, length := range []int{1, 64, 65, 1000} {
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
