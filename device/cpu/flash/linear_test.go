package flash

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/device/cpu/pool"
	"anneal/internal/filetest"
	"anneal/internal/isa"
	"anneal/tensor"

	"pgregory.net/rapid"
)

func newLinear(t testing.TB, tier isa.Tier, threads int) *Linear {
	p := pool.New(threads)
	l := NewLinear(tier, p)
	t.Cleanup(func() { l.Close(); p.Close() })
	return l
}

// linearProblem is one linear attention to compute, in any storage, with gates or without.
type linearProblem struct {
	heads         device.Heads
	mask          device.Mask
	qkv, gates    *tensor.Tensor
	out, norm     *tensor.Tensor
	dout          *tensor.Tensor
	dqkv, dgates  *tensor.Tensor
	length, batch int
}

func newLinearProblem(dt tensor.DType, rows, length int, heads device.Heads, start []int32, gated bool,
	seed uint64) *linearProblem {
	n, wide := rows*length, tensor.F32
	if dt == tensor.F64 {
		wide = tensor.F64
	}
	p := &linearProblem{
		heads: heads, mask: device.Mask{Len: length}, length: length, batch: rows,
		qkv: zeros(dt, n, heads.Cols()), out: zeros(dt, n, heads.Q*heads.Size), dout: zeros(dt, n, heads.Q*heads.Size),
		norm: zeros(wide, heads.Q, n), dqkv: zeros(dt, n, heads.Cols()),
	}
	if start != nil {
		p.mask.Start = tensor.Of(start)
	}
	fill(p.qkv, seed)
	fill(p.dout, seed+1)
	if gated {
		p.gates, p.dgates = zeros(wide, n, heads.GateCols()), zeros(wide, n, heads.GateCols())
		fill(p.gates, seed+2)
		for i := range p.gates.Len() {
			p.gates.SetFloat64(i, 2+2*p.gates.Float64(i))
		}
	}
	return p
}

func (p *linearProblem) run(l *Linear) {
	l.Forward(p.out, p.norm, p.qkv, p.gates, p.heads, p.mask)
	l.Backward(p.dqkv, p.dgates, p.dout, p.out, p.norm, p.qkv, p.gates, p.heads, p.mask)
}

func (p *linearProblem) gateValues() []float64 {
	if p.gates == nil {
		return nil
	}
	return values(p.gates)
}

func (p *linearProblem) starts() []int32 {
	if p.mask.Start == nil {
		return nil
	}
	return p.mask.Start.I32()
}

// linearKinds are the kinds of linear attention.
var linearKinds = []struct {
	rule  device.LinearRule
	gated bool
}{{device.AddRule, false}, {device.AddRule, true}, {device.DeltaRule, true}, {device.GatedDeltaRule, true},
	{device.VectorGateRule, true}}

// recurrent is the definition, one token after the other, in float64.
func (p *linearProblem) recurrent() (out, norm []float64) {
	h, x, g := p.heads, values(p.qkv), p.gateValues()
	tokens := p.batch * p.length
	out, norm = make([]float64, tokens*h.Q*h.Size), make([]float64, h.Q*tokens)
	phi := func(x float64) float64 { return math.Max(x, 0) + math.Exp(math.Min(x, 0)) }
	for head := range h.Q {
		kv := head * h.KV / h.Q
		s, z := make([]float64, h.Size*h.Size), make([]float64, h.Size)
		for n := range tokens {
			fade := 1.0
			if g != nil {
				fade = 1 / (1 + math.Exp(-g[n*h.KV+kv]))
			}
			if n%p.length == 0 || p.starts() != nil && int(p.starts()[n]) == n%p.length {
				fade = 0
			}
			row := x[n*h.Cols():][:h.Cols()]
			q, k, v := row[head*h.Size:], row[(h.Q+kv)*h.Size:], row[(h.Q+h.KV+kv)*h.Size:]
			sum := linearEps
			o := out[(n*h.Q+head)*h.Size:][:h.Size]
			for d := range h.Size {
				z[d] = fade*z[d] + phi(k[d])
				sum += phi(q[d]) * z[d]
				for e := range h.Size {
					s[d*h.Size+e] = fade*s[d*h.Size+e] + phi(k[d])*v[e]
					o[e] += phi(q[d]) * s[d*h.Size+e]
				}
			}
			norm[head*tokens+n] = sum
			for e := range o {
				o[e] /= sum
			}
		}
	}
	return out, norm
}

// documents draws where the documents of rows begin.
func documents(t *rapid.T, rows, length int) []int32 {
	start := make([]int32, rows*length)
	for i := range start {
		if i%length > 0 {
			start[i] = start[i-1]
			if rapid.IntRange(0, 20).Draw(t, "boundary") == 0 {
				start[i] = int32(i % length)
			}
		}
	}
	return start
}

func drawLinear(t *rapid.T, dt tensor.DType) *linearProblem {
	kv := rapid.IntRange(1, 2).Draw(t, "K")
	heads := device.Heads{
		Q: kv * rapid.IntRange(1, 2).Draw(t, "H/K"), KV: kv,
		Size: rapid.SampledFrom([]int{1, 3, 4, 8, 17, 32, 33}).Draw(t, "E"),
	}
	rows, length := rapid.IntRange(1, 2).Draw(t, "B"),
		rapid.SampledFrom([]int{1, 2, 15, 63, 64, 65, 128, 130, 200}).Draw(t, "T")
	var start []int32
	if rapid.Bool().Draw(t, "documents") {
		start = documents(t, rows, length)
	}
	return newLinearProblem(dt, rows, length, heads, start, rapid.Bool().Draw(t, "gated"),
		rapid.Uint64().Draw(t, "seed"))
}

// The golden values come from the definition in the authors' paper, for the inputs of the attention goldens (see
// reference values in flash_test.go).
func TestLinearAttentionGolden(t *testing.T) {
	l := newLinear(t, isa.Generic, 1)
	p := newLinearProblem(tensor.F64, 1, 5, device.Heads{Q: 1, KV: 1, Size: 3}, nil, false, 1)
	for i := range 5 {
		for j := range 3 {
			x, y := float64(i), float64(j)
			p.qkv.SetFloat64(i*9+j, math.Sin(1+3*x+y))
			p.qkv.SetFloat64(i*9+3+j, math.Cos(2+2*x+.5*y))
			p.qkv.SetFloat64(i*9+6+j, math.Sin(.3*x-.7*y))
		}
	}
	p.run(l)
	for row, want := range map[int][]float64{
		1: {.1970245123, -.4743416559, -.9226175315},
		4: {.5367761994, -.0868859185, -.6696842313},
	} {
		for j, w := range want {
			if got := p.out.Float64(row*3 + j); math.Abs(got-w) > 1e-10 {
				t.Errorf("out[%d, %d] = %.11f, want %v", row, j, got, w)
			}
		}
	}
}

// In float64 the recurrence, chunks of any size and the masked quadratic form are the same function.
func TestRecurrentChunkedAndQuadraticAgree(t *testing.T) {
	l := newLinear(t, isa.Generic, 1)
	rapid.Check(t, func(rt *rapid.T) {
		p := drawLinear(rt, tensor.F64)
		l.f64.chunk = rapid.SampledFrom([]int{1, 7, 16, 64}).Draw(rt, "C")
		p.run(l)
		out, norm := p.recurrent()
		qkv, gates := values(p.qkv), p.gateValues()
		quadratic, sums := conformance.LinearAttention(qkv, gates, p.heads, p.length, p.starts())
		dqkv, dgates := conformance.LinearAttentionGrad(values(p.dout), nil, qkv, gates, p.heads, p.length, p.starts())
		same := func(name string, got, want []float64) {
			top := 1.0
			for _, w := range want {
				top = math.Max(top, math.Abs(w))
			}
			if far := farthest(got, want); !(far <= 1e-12*top) {
				rt.Fatalf("C = %d: %s is off by %.3g, with values to %.3g", l.f64.chunk, name, far, top)
			}
		}
		same("out of the recurrence", out, quadratic)
		same("norm of the recurrence", norm, sums)
		same("out", values(p.out), out)
		same("norm", values(p.norm), norm)
		same("dqkv", values(p.dqkv), dqkv)
		if gates != nil {
			same("dgates", values(p.dgates), dgates)
		}
	})
}

// Every gradient agrees with central differences of Σ out·dout in float64, including the denominator's part.
func TestLinearAttentionGradIsFiniteDifference(t *testing.T) {
	const eps = 1e-5
	l := newLinear(t, isa.Generic, 1)
	for _, kind := range linearKinds {
		start := make([]int32, 2*75)
		for i := range start {
			start[i] = int32(i % 75 / 70 * 70)
		}
		heads := device.Heads{Q: 4, KV: 2, Size: 3, Rule: kind.rule}
		p := newLinearProblem(tensor.F64, 2, 75, heads, start, kind.gated, 5)
		p.run(l)
		dout := values(p.dout)
		loss := func() (sum float64) {
			l.Forward(p.out, p.norm, p.qkv, p.gates, p.heads, p.mask)
			for i, o := range values(p.out) {
				sum += o * dout[i]
			}
			return sum
		}
		check := func(name string, x, grad *tensor.Tensor) {
			for i := 0; i < x.Len(); i += 17 {
				v := x.Float64(i)
				x.SetFloat64(i, v+eps)
				up := loss()
				x.SetFloat64(i, v-eps)
				down := loss()
				x.SetFloat64(i, v)
				got, want := grad.Float64(i), (up-down)/(2*eps)
				if math.Abs(got-want) > 1e-6*math.Abs(want)+1e-8 {
					t.Errorf("%+v: gradient %d of %s is %v, differences give %v", kind, i, name, got, want)
				}
			}
		}
		check("qkv", p.qkv, p.dqkv)
		if kind.gated {
			check("gates", p.gates, p.dgates)
		}
	}
}

// A document in a row, and a row by itself, have the same bits in every storage.
func TestLinearDocumentsAreRows(t *testing.T) {
	heads := device.Heads{Q: 4, KV: 2, Size: 24}
	lengths := []int{70, 1, 64, 129, 36}
	for _, tier := range isa.Tiers() {
		l := newLinear(t, tier, 2)
		for _, dt := range []tensor.DType{tensor.BF16, tensor.F16, tensor.F32, tensor.F64} {
			for _, kind := range linearKinds {
				heads.Rule = kind.rule
				var start []int32
				for _, n := range lengths {
					first := int32(len(start))
					for range n {
						start = append(start, first)
					}
				}
				all := newLinearProblem(dt, 1, len(start), heads, start, kind.gated, 3)
				all.run(l)
				from := 0
				for _, n := range lengths {
					one := newLinearProblem(dt, 1, n, heads, nil, kind.gated, 3)
					part := func(x *tensor.Tensor) []byte {
						size := len(x.Raw()) / len(start)
						return x.Raw()[from*size : (from+n)*size]
					}
					copy(one.qkv.Raw(), part(all.qkv))
					copy(one.dout.Raw(), part(all.dout))
					if kind.gated {
						copy(one.gates.Raw(), part(all.gates))
					}
					one.run(l)
					if !bytes.Equal(one.out.Raw(), part(all.out)) || !bytes.Equal(one.dqkv.Raw(), part(all.dqkv)) ||
						kind.gated && !bytes.Equal(one.dgates.Raw(), part(all.dgates)) {
						t.Errorf("%v %v %+v: the document of %d tokens at %d has other bits than as a row",
							tier, dt, kind, n, from)
					}
					from += n
				}
			}
		}
	}
}

func TestLinearBitsDoNotDependOnThreads(t *testing.T) {
	heads := device.Heads{Q: 6, KV: 3, Size: 40}
	for _, tier := range isa.Tiers() {
		for _, kind := range linearKinds {
			heads.Rule = kind.rule
			var want *linearProblem
			for _, threads := range []int{1, 2, 5} {
				p := newLinearProblem(tensor.BF16, 2, 70, heads, nil, kind.gated, 11)
				p.run(newLinear(t, tier, threads))
				if want == nil {
					want = p
				}
				if !bytes.Equal(p.out.Raw(), want.out.Raw()) || !bytes.Equal(p.dqkv.Raw(), want.dqkv.Raw()) {
					t.Errorf("%v %+v: %d threads give other bits than one", tier, kind, threads)
				}
			}
		}
	}
}

// Nearly closed gates make decays vanish, without NaN or slow denormals; the result is that of the quadratic form.
func TestClosedGatesForget(t *testing.T) {
	for _, tier := range isa.Tiers() {
		p := newLinearProblem(tensor.F32, 1, 130, device.Heads{Q: 1, KV: 1, Size: 16}, nil, true, 9)
		for i := range p.gates.Len() {
			p.gates.SetFloat64(i, -40+float64(i%9)*10)
		}
		p.run(newLinear(t, tier, 1))
		want, _ := conformance.LinearAttention(values(p.qkv), values(p.gates), p.heads, p.length, nil)
		if far := farthest(values(p.out), want); !(far < 1e-5) {
			t.Errorf("%v: out is off by %v", tier, far)
		}
		dqkv, dgates := conformance.LinearAttentionGrad(values(p.dout), nil, values(p.qkv), values(p.gates), p.heads,
			p.length, nil)
		if far := farthest(values(p.dqkv), dqkv); !(far < 1e-5) {
			t.Errorf("%v: dqkv is off by %v", tier, far)
		}
		if far := farthest(values(p.dgates), dgates); !(far < 1e-5) {
			t.Errorf("%v: dgates is off by %v", tier, far)
		}
	}
}

// Scratch memory does not grow with the length, and only the first call allocates.
func TestLinearScratchIsConstant(t *testing.T) {
	heads := device.Heads{Q: 2, KV: 1, Size: 32}
	var want int
	for i, length := range []int{64, 1000} {
		l := newLinear(t, isa.Tiers()[0], 2)
		p := newLinearProblem(tensor.BF16, 1, length, heads, nil, true, 1)
		p.run(l)
		if i == 0 {
			want = l.ScratchBytes()
		} else if got := l.ScratchBytes(); got != want {
			t.Errorf("scratch is %d bytes for rows of %d, %d for rows of 64", got, length, want)
		}
		if n := filetest.AllocsPerRun(3, func() { p.run(l) }); n != 0 {
			t.Errorf("a call allocates %v times", n)
		}
	}
}

func TestLinearRefusesWhatIsNotDocuments(t *testing.T) {
	l := newLinear(t, isa.Generic, 1)
	p := newLinearProblem(tensor.F32, 1, 4, device.Heads{Q: 1, KV: 1, Size: 4}, []int32{0, 0, 0, 1}, false, 1)
	defer func() {
		if r := fmt.Sprint(recover()); !strings.Contains(r, "not documents") {
			t.Errorf("a sliding start gave %q", r)
		}
	}()
	p.run(l)
}
