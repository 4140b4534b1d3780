package flash

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/device/cpu/pool"
	"anneal/internal/filetest"
	"anneal/internal/isa"
	"anneal/tensor"

	"pgregory.net/rapid"
)

func newEngine(t testing.TB, tier isa.Tier, threads int) *Engine {
	p := pool.New(threads)
	e := New(tier, p)
	t.Cleanup(func() { e.Close(); p.Close() })
	return e
}

// problem is one call of attention, in any storage.
type problem struct {
	heads          device.Heads
	mask           device.Mask
	qkv, out, dout *tensor.Tensor
	lse, dqkv      *tensor.Tensor
}

func newProblem(dt tensor.DType, rows, length int, heads device.Heads, start []int32, seed uint64) *problem {
	n := rows * length
	stat := tensor.F32
	if dt == tensor.F64 {
		stat = tensor.F64
	}
	p := &problem{
		heads: heads, mask: device.Mask{Len: length},
		qkv: zeros(dt, n, heads.Cols()), out: zeros(dt, n, heads.Q*heads.Size), dout: zeros(dt, n, heads.Q*heads.Size),
		lse: zeros(stat, heads.Q, n), dqkv: zeros(dt, n, heads.Cols()),
	}
	if start != nil {
		p.mask.Start = tensor.Of(start)
	}
	fill(p.qkv, seed)
	fill(p.dout, seed+1)
	return p
}

func (p *problem) run(e *Engine) {
	e.Forward(p.out, p.lse, p.qkv, p.heads, p.mask)
	e.Backward(p.dqkv, p.dout, p.out, p.lse, p.qkv, p.heads, p.mask)
}

// reference returns the float64 results from the values that p stores.
func (p *problem) reference() (out, lse, dqkv []float64) {
	out, lse = conformance.Attention(values(p.qkv), p.heads, p.mask)
	return out, lse, conformance.AttentionGrad(values(p.dout), nil, values(p.qkv), p.heads, p.mask)
}

func zeros(dt tensor.DType, shape ...int) *tensor.Tensor {
	n := dt.Size()
	for _, d := range shape {
		n *= d
	}
	t := tensor.View(dt, make([]byte, n), shape...)
	return &t
}

func fill(t *tensor.Tensor, seed uint64) {
	rng := tensor.NewRNG(seed, tensor.PurposeInit, 0)
	for i := range t.Len() {
		t.SetFloat64(i, rng.Normals(uint64(i))[0])
	}
}

func values(t *tensor.Tensor) []float64 {
	v := make([]float64, t.Len())
	for i := range v {
		v[i] = t.Float64(i)
	}
	return v
}

// farthest returns the largest distance between two sets of values, NaN if their non-finite values are at different
// places.
func farthest(got, want []float64) float64 {
	var far float64
	for i := range want {
		if got[i] != want[i] {
			far = math.Max(far, math.Abs(got[i]-want[i]))
		}
	}
	return far
}

// starts draws the first visible positions of rows of length tokens: documents, or anything that lets a token see
// itself.
func starts(t *rapid.T, rows, length int) []int32 {
	start := make([]int32, rows*length)
	documents := rapid.Bool().Draw(t, "documents")
	for r := range rows {
		var first int32
		for i := range length {
			switch {
			case !documents:
				first = int32(rapid.IntRange(0, i).Draw(t, "start"))
			case i > 0 && rapid.IntRange(0, 5).Draw(t, "boundary") == 0:
				first = int32(i)
			}
			start[r*length+i] = first
		}
	}
	return start
}

// The tiled algorithm in float64 agrees with the formula for any shape, mask and tiles.
func TestTiledEqualsNaiveInFloat64(t *testing.T) {
	e := newEngine(t, isa.Generic, 2)
	rapid.Check(t, func(rt *rapid.T) {
		e.f64.blockQ = 4 * rapid.IntRange(1, 5).Draw(rt, "blockQ/4")
		e.f64.blockK = 4 * rapid.IntRange(1, 5).Draw(rt, "blockK/4")
		rows, length := rapid.IntRange(1, 3).Draw(rt, "rows"), rapid.IntRange(1, 50).Draw(rt, "T")
		kv := rapid.IntRange(1, 3).Draw(rt, "K")
		heads := device.Heads{
			Q: kv * rapid.IntRange(1, 3).Draw(rt, "H/K"), KV: kv, Size: rapid.IntRange(1, 19).Draw(rt, "E"),
		}
		var start []int32
		if rapid.Bool().Draw(rt, "masked") {
			start = starts(rt, rows, length)
		}
		p := newProblem(tensor.F64, rows, length, heads, start, 7)
		p.run(e)
		out, lse, dqkv := p.reference()
		for _, c := range []struct {
			name string
			got  *tensor.Tensor
			want []float64
		}{{"out", p.out, out}, {"lse", p.lse, lse}, {"dqkv", p.dqkv, dqkv}} {
			if far := farthest(values(c.got), c.want); !(far <= 1e-12) {
				rt.Fatalf("%s is off by %g", c.name, far)
			}
		}
	})
}

// Golden values: ATT-1 of the algorithm notes, from the formula in float64.
func TestGolden(t *testing.T) {
	const n, d = 5, 3
	p := newProblem(tensor.F64, 1, n, device.Heads{Q: 1, KV: 1, Size: d}, nil, 0)
	for i := range n {
		for j := range d {
			x, y := float64(i), float64(j)
			p.qkv.SetFloat64(i*9+j, math.Sin(1+3*x+y))
			p.qkv.SetFloat64(i*9+3+j, math.Cos(2+2*x+.5*y))
			p.qkv.SetFloat64(i*9+6+j, math.Sin(.3*x-.7*y))
			p.dout.SetFloat64(i*d+j, math.Cos(.5*x+y))
		}
	}
	e := newEngine(t, isa.Generic, 1)
	check := func(name string, got []float64, want ...float64) {
		t.Helper()
		if far := farthest(got, want); !(far <= 6e-11) {
			t.Errorf("%s = %.10f, want %.10f", name, got, want)
		}
	}
	row := func(x *tensor.Tensor, i, col int) []float64 { return values(x)[i*x.Cols()+col:][:d] }

	p.run(e)
	check("causal lse", values(p.lse), -.7034210892, 1.2867412803, 1.4292568933, 1.7963940006, 1.6625537048)
	check("causal out row 4", row(p.out, 4, 0), .5430135716, -.0908409237, -.6819715132)
	check("causal dq row 4", row(p.dqkv, 4, 0), .0210286882, .0136110170, .0028608942)
	check("causal dk row 0", row(p.dqkv, 0, 3), -.0134133195, -.0293528437, -.0183054988)
	check("causal dv row 0", row(p.dqkv, 0, 6), 1.5843932451, .1396879899, -1.4334457591)

	p.mask.Start = tensor.Of([]int32{0, 0, 2, 2, 2})
	p.run(e)
	check("documents lse", values(p.lse), -.7034210892, 1.2867412803, 1.1014175096, .8321644264, 1.3955215318)
	check("documents out row 2", row(p.out, 2, 0), row(p.qkv, 2, 6)...)
	check("documents dq row 2", row(p.dqkv, 2, 0), 0, 0, 0)
	check("documents dk row 4", row(p.dqkv, 4, 3), -.0312697653, -.0737232026, -.0483958673)

	p.mask.Start, p.mask.Layout = nil, window(2, n)
	p.run(e)
	check("window lse", values(p.lse), -.7034210892, 1.2867412803, 1.3213870343, .8321644264, .1030361617)
	check("window out row 4", row(p.out, 4, 0), .8668497902, .3563535756, -.3217412938)
	check("window dq row 4", row(p.dqkv, 4, 0), .0515951837, -.0094085463, -.0681087361)
	check("window dk row 0", row(p.dqkv, 0, 3), .0210686309, .0266955008, .0077786504)
}

// Backward is the derivative of Forward, by central differences in float64.
func TestBackwardMatchesFiniteDifferences(t *testing.T) {
	e := newEngine(t, isa.Generic, 1)
	for name, mask := range map[string]device.Mask{
		"causal":        {},
		"dilated":       {Layout: dilated(7)},
		"dilated ALiBi": {Layout: dilated(7), Slopes: []float64{0.5, 0.25, 0, 0.1}},
	} {
		p := newProblem(tensor.F64, 2, 7, device.Heads{Q: 4, KV: 2, Size: 5},
			[]int32{0, 0, 0, 3, 3, 3, 3, 0, 1, 1, 1, 1, 6, 6}, 3)
		p.mask.Layout, p.mask.Slopes = mask.Layout, mask.Slopes
		p.run(e)
		dqkv := values(p.dqkv)
		loss := func() (sum float64) {
			e.Forward(p.out, p.lse, p.qkv, p.heads, p.mask)
			for i, o := range p.out.F64() {
				sum += o * p.dout.F64()[i]
			}
			return sum
		}
		x := p.qkv.F64()
		for i := range x {
			const h = 1e-5
			keep := x[i]
			x[i] = keep + h
			up := loss()
			x[i] = keep - h
			down := loss()
			x[i] = keep
			if fd := (up - down) / (2 * h); math.Abs(fd-dqkv[i]) > 1e-8*(1+math.Abs(fd)) {
				t.Fatalf("%s: d qkv[%d] = %.12g, finite difference %.12g", name, i, dqkv[i], fd)
			}
		}
	}
}

// Documents packed into one row under a mask give the same results as separate documents (ATT-6).
func TestPackedDocumentsEqualSeparateOnes(t *testing.T) {
	e := newEngine(t, isa.Generic, 2)
	e.f64.blockQ, e.f64.blockK = 8, 4
	heads := device.Heads{Q: 4, KV: 2, Size: 6}
	lengths := []int{9, 1, 22, 8}
	var start []int32
	for _, n := range lengths {
		start = append(start, slices.Repeat([]int32{int32(len(start))}, n)...)
	}
	packed := newProblem(tensor.F64, 1, len(start), heads, start, 5)
	packed.run(e)
	at := 0
	for _, n := range lengths {
		alone := newProblem(tensor.F64, 1, n, heads, nil, 0)
		copy(alone.qkv.F64(), packed.qkv.F64()[at*heads.Cols():])
		copy(alone.dout.F64(), packed.dout.F64()[at*heads.Q*heads.Size:])
		alone.run(e)
		for _, c := range []struct {
			name        string
			alone, pack *tensor.Tensor
		}{{"out", alone.out, packed.out}, {"dqkv", alone.dqkv, packed.dqkv}} {
			rows := c.pack.Slice(at, at+n)
			if far := farthest(values(&rows), values(c.alone)); !(far <= 1e-12) {
				t.Errorf("%s of the document at %d is off by %g", c.name, at, far)
			}
		}
		at += n
	}
}

// FlashAttention's criterion: the error to float64 is at most twice that of a straightforward computation in the same
// precision (three times for gradients).
func TestLowPrecisionIsAsCloseAsNaive(t *testing.T) {
	for _, tier := range isa.Tiers() {
		for _, dt := range []tensor.DType{tensor.F32, tensor.BF16} {
			for _, c := range []struct {
				rows, length int
				heads        device.Heads
				every        int // tokens per document, 0 for none
			}{
				{1, 1, device.Heads{Q: 1, KV: 1, Size: 64}, 0},
				{2, 37, device.Heads{Q: 2, KV: 1, Size: 48}, 0},
				{1, 128, device.Heads{Q: 2, KV: 2, Size: 64}, 0},
				{1, 200, device.Heads{Q: 4, KV: 2, Size: 64}, 23},
				{2, 131, device.Heads{Q: 3, KV: 1, Size: 13}, 31},
				{1, 300, device.Heads{Q: 1, KV: 1, Size: 128}, 0},
			} {
				t.Run(fmt.Sprintf("%v/%v/T%d,E%d", tier, dt, c.length, c.heads.Size), func(t *testing.T) {
					var start []int32
					for i := range c.rows * c.length {
						if c.every > 0 {
							start = append(start, int32(i%c.length/c.every*c.every))
						}
					}
					p := newProblem(dt, c.rows, c.length, c.heads, start, 11)
					p.run(newEngine(t, tier, 2))
					p.checkAgainstNaive(t)
				})
			}
		}
	}
}

// checkAgainstNaive compares with float64. It allows a multiple of the error that the storage format alone causes:
// rounding the float64 results to it and, for gradients, rounding out.
func (p *problem) checkAgainstNaive(t *testing.T) {
	t.Helper()
	out, lse, dqkv := p.reference()
	check := func(name string, got *tensor.Tensor, want []float64, factor, floor float64) {
		t.Helper()
		rounded := zeros(got.DType(), len(want))
		for i, v := range want {
			rounded.SetFloat64(i, v)
		}
		allowed := factor*farthest(values(rounded), want) + floor
		if far := farthest(values(got), want); !(far <= allowed) {
			t.Errorf("%s is off by %g, allowed %g", name, far, allowed)
		}
	}
	check("out", p.out, out, 2, 1e-5)
	check("lse", p.lse, lse, 2, 1e-5)
	check("dqkv", p.dqkv, dqkv, 3, 2e-4)
}

func TestLargeScoresDoNotOverflow(t *testing.T) {
	for _, tier := range isa.Tiers() {
		p := newProblem(tensor.F32, 1, 70, device.Heads{Q: 1, KV: 1, Size: 64}, nil, 2)
		for i := range p.qkv.Len() / 3 { // queries and keys about 100 each: scores up to 1e5
			for c := range 2 {
				at := i/64*192 + c*64 + i%64
				p.qkv.SetFloat64(at, 100*p.qkv.Float64(at))
			}
		}
		p.run(newEngine(t, tier, 1))
		out, _, _ := p.reference()
		if far := farthest(values(p.out), out); !(far <= 0.05) { // scores carry an absolute error of 1e5 · 2⁻²⁴
			t.Errorf("%v: out is off by %g", tier, far)
		}
		for i, v := range values(p.dqkv) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%v: dqkv[%d] = %v", tier, i, v)
			}
		}
	}
}

// A malformed mask that hides a token from itself gives zeros, not NaN.
func TestRowThatSeesNothingIsZero(t *testing.T) {
	for _, tier := range isa.Tiers() {
		p := newProblem(tensor.F32, 1, 3, device.Heads{Q: 1, KV: 1, Size: 8}, []int32{0, 3, 0}, 2)
		p.run(newEngine(t, tier, 1))
		for c := range 8 {
			if o, dq := p.out.Float64(8+c), p.dqkv.Float64(24+c); o != 0 || dq != 0 {
				t.Fatalf("%v: out %v and dq %v of a token that sees nothing", tier, o, dq)
			}
		}
		if l := p.lse.Float64(1); !math.IsInf(l, -1) {
			t.Fatalf("%v: lse %v, want -Inf", tier, l)
		}
	}
}

func TestBitsDoNotDependOnThreads(t *testing.T) {
	for _, tier := range isa.Tiers() {
		var first []byte
		for _, threads := range []int{1, 2, 5} {
			p := newProblem(tensor.BF16, 2, 150, device.Heads{Q: 4, KV: 2, Size: 64}, nil, 9)
			p.run(newEngine(t, tier, threads))
			got := slices.Concat(p.out.Raw(), p.lse.Raw(), p.dqkv.Raw())
			if first == nil {
				first = got
			}
			if !slices.Equal(got, first) {
				t.Errorf("%v: %d threads give other bits than 1", tier, threads)
			}
		}
	}
}

// Scratch memory grows with the length of a row, not with its square.
func TestScratchIsLinearInLength(t *testing.T) {
	var bytes [2]int
	for i, length := range []int{1024, 4096} {
		e := newEngine(t, isa.Generic, 1)
		newProblem(tensor.F64, 1, length, device.Heads{Q: 1, KV: 1, Size: 1}, slices.Repeat([]int32{0}, length), 1).
			run(e)
		bytes[i] = e.ScratchBytes()
	}
	if bytes[1] > 4*bytes[0] || bytes[1] > 4096*4096 {
		t.Errorf("%d bytes for 1024 tokens, %d for 4096", bytes[0], bytes[1])
	}
}

// Scratch returns exactly the memory that an engine takes, for any storage and pattern.
func TestScratchIsPredicted(t *testing.T) {
	const length = 100
	heads := device.Heads{Q: 4, KV: 2, Size: 40}
	for _, tier := range isa.Tiers() {
		for _, dt := range []tensor.DType{tensor.BF16, tensor.F16, tensor.F32, tensor.F64} {
			for name, l := range map[string]*device.Layout{
				"full": nil, "window": window(90, length), "dilated": dilated(length),
			} {
				for _, slopes := range [][]float64{nil, {0.5, 0.25, 0.1, 0}} {
					p := newProblem(dt, 1, length, heads, nil, 1)
					p.mask.Layout, p.mask.Slopes = l, slopes
					e := newEngine(t, tier, 2)
					e.Forward(p.out, p.lse, p.qkv, p.heads, p.mask)
					forward := e.ScratchBytes()
					p.run(e)
					for trains, got := range map[bool]int{false: forward, true: e.ScratchBytes()} {
						if want := Scratch(tier, 2, dt, length, heads, p.mask, trains); got != want {
							t.Errorf("%v, %v, %s, trains %v: %d bytes, predicted %d", tier, dt, name, trains, got, want)
						}
					}
				}
			}
		}
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.BF16, tensor.F32, tensor.F64} {
		e := newEngine(t, isa.Tiers()[0], 2)
		p := newProblem(dt, 2, 64, device.Heads{Q: 2, KV: 1, Size: 32}, make([]int32, 128), 1)
		p.run(e)
		if n := filetest.AllocsPerRun(5, func() { p.run(e) }); n != 0 {
			t.Errorf("%v: %v allocations, want 0", dt, n)
		}
	}
}
