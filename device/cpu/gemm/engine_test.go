package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/internal/filetest"
	"anneal/internal/isa"
	"anneal/tensor"
)

var (
	forms   = []device.Form{device.NN, device.NT, device.TN}
	storage = []tensor.DType{tensor.F32, tensor.BF16}
	half    = []tensor.DType{tensor.F32, tensor.BF16, tensor.F16}
)

// A problem is a product with random operands.
type problem struct {
	form      device.Form
	m, n, k   int
	a, b, dst *tensor.Tensor
	opt       device.MatMulOptions
}

func newProblem(form device.Form, m, n, k int, da, db, dc tensor.DType, opt device.MatMulOptions,
	seed uint64) *problem {
	r := rand.New(rand.NewPCG(seed, 7))
	ra, ca, rb, cb := m, k, k, n
	if form == device.TN {
		ra, ca = k, m
	}
	if form == device.NT {
		rb, cb = n, k
	}
	return &problem{form, m, n, k, random(r, da, ra, ca), random(r, db, rb, cb), random(r, dc, m, n), opt}
}

// biased gives the product a bias, of the dtype that its operands require.
func (p *problem) biased(seed uint64) *problem {
	d := tensor.F32
	if p.opt.Operand == tensor.F64 {
		d = tensor.F64
	}
	p.opt.Bias = random(rand.New(rand.NewPCG(seed, 8)), d, 1, p.n)
	return p
}

func random(r *rand.Rand, d tensor.DType, rows, cols int) *tensor.Tensor {
	t := empty(d, rows, cols)
	for i := range t.Len() {
		t.SetFloat64(i, r.NormFloat64())
	}
	return t
}

func empty(d tensor.DType, rows, cols int) *tensor.Tensor {
	t := tensor.View(d, make([]byte, rows*cols*d.Size()+8), rows, cols)
	return &t
}

func (p *problem) String() string {
	return fmt.Sprintf("%v %d×%d×%d %v·%v→%v %+v",
		p.form, p.m, p.n, p.k, p.a.DType(), p.b.DType(), p.dst.DType(), p.opt)
}

// values returns the elements of an operand as the product rounds them, a(i, p) at [i·K+p] or b(p, j) at [j·K+p].
func (p *problem) values(t *tensor.Tensor, turned bool) []float64 {
	out := make([]float64, t.Len())
	rows, cols := t.Rows(), t.Cols()
	for i := range rows {
		for j := range cols {
			v := t.Float64(i*cols + j)
			if t.DType() == tensor.F32 {
				switch p.opt.Operand {
				case tensor.BF16:
					v = float64(tensor.BF16FromFloat32(float32(v)).Float32())
				case tensor.F16:
					v = float64(tensor.F16FromFloat32(float32(v)).Float32())
				case tensor.TF32:
					v = float64(tensor.RoundTF32(float32(v)))
				}
			}
			if turned {
				out[j*rows+i] = v
			} else {
				out[i*cols+j] = v
			}
		}
	}
	return out
}

// check compares got with the float64 product of the operands, rounded as the product rounds them. FP32 summation of k
// terms errs by at most about k·2⁻²⁴·Σ|a||b|; a BF16 result is then rounded once, by at most 2⁻⁹ of itself, an FP16
// one by 2⁻¹².
func (p *problem) check(t interface{ Fatalf(string, ...any) }, was, got *tensor.Tensor) {
	eps, round := 0x1p-24, 0.0
	if p.opt.Operand == tensor.F64 {
		eps = 0x1p-53
	}
	if got.DType() == tensor.BF16 {
		round = 0x1p-8
	}
	if got.DType() == tensor.F16 {
		round = 0x1p-11
	}
	scale := p.opt.Scale
	if scale == 0 {
		scale = 1
	}
	a, b := p.values(p.a, p.form == device.TN), p.values(p.b, p.form != device.NT)
	for i := range p.m {
		for j := range p.n {
			var want, size float64
			if p.opt.Accumulate {
				want = was.Float64(i*p.n + j)
				size = math.Abs(want)
			}
			if p.opt.Bias != nil {
				want += p.opt.Bias.Float64(j)
				size += math.Abs(p.opt.Bias.Float64(j))
			}
			row, col := a[i*p.k:][:p.k], b[j*p.k:][:p.k]
			for q, v := range row {
				v *= col[q] * scale
				want += v
				size += math.Abs(v)
			}
			bound := float64(p.k+2)*eps*size + round*math.Abs(want) + 1e-37 // subnormals are flushed by dot products
			if got.DType() == tensor.F16 {
				bound += 0x1p-25
			}
			if v := got.Float64(i*p.n + j); !(math.Abs(v-want) <= bound) {
				t.Fatalf("%v: dst[%d,%d] = %v, want %v ± %v", p, i, j, v, want, bound)
			}
		}
	}
}

func (p *problem) run(e *Engine) *tensor.Tensor {
	out := empty(p.dst.DType(), p.m, p.n)
	copy(out.Raw(), p.dst.Raw())
	e.MatMul(out, p.a, p.b, p.form, p.opt)
	return out
}

func eachTier(t *testing.T, f func(t *testing.T, tier isa.Tier)) {
	for _, tier := range isa.Tiers() {
		t.Run(tier.String(), func(t *testing.T) { f(t, tier) })
	}
}

func newEngine(t testing.TB, tier isa.Tier, threads int) *Engine {
	p := pool.New(threads)
	e := New(tier, p)
	t.Cleanup(func() { e.Close(); p.Close() })
	return e
}

func TestProductMatchesFloat64(t *testing.T) {
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		e := newEngine(t, tier, 2)
		rapid.Check(t, func(t *rapid.T) {
			dim := func(name string) int {
				return rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(90, 110),
					rapid.SampledFrom([]int{1, 16, 32, 96, 97, 128})).Draw(t, name)
			}
			operand := rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.TF32}).Draw(t,
				"operand")
			of := rapid.SampledFrom(half)
			p := newProblem(rapid.SampledFrom(forms).Draw(t, "form"), dim("m"), dim("n"), dim("k"),
				of.Draw(t, "a"), of.Draw(t, "b"), of.Draw(t, "dst"),
				device.MatMulOptions{
					Operand: operand, Accumulate: rapid.Bool().Draw(t, "accumulate"),
					Scale: rapid.SampledFrom([]float64{0, 1, 0.3, -2}).Draw(t, "scale"),
				}, rapid.Uint64().Draw(t, "seed"))
			if rapid.Bool().Draw(t, "bias") {
				p.biased(1)
			}
			p.check(t, p.dst, p.run(e))
		})
	})
}

// Products agree with float64 at sizes around the block limits, in every form and storage, with one worker, which
// keeps packed blocks from task to task, and with two.
func TestProductMatchesFloat64AcrossBlocks(t *testing.T) {
	const maxN, maxK, maxC = 384, 192, 528 * 384 // of vectorSizes
	sizes := [][3]int{
		{maxC/maxN + 5, maxN + 1, 7}, {14, 35, 2*maxK + 3}, {11, 32, 4*maxK + 1}, {811, 290, 2*maxK + 1},
		{33, 1030, 513},
	}
	z := vectorSizes(12, 1)
	if c := choose(device.NT, 811, 290, 2*maxK+1, &z, 1, false); !c.keep || c.down < 2 || c.depth == c.k {
		t.Fatalf("the last size no longer re-uses packed blocks: %+v", c)
	}
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		engines := []*Engine{newEngine(t, tier, 1), newEngine(t, tier, 2)}
		for i, s := range sizes {
			for _, form := range forms {
				for j := range 8 {
					if s[0]*s[1]*s[2] > 1e7 && j%4 != 1 {
						continue
					}
					p := newProblem(form, s[0], s[1], s[2], storage[j&1], storage[j>>1&1], storage[j>>2],
						device.MatMulOptions{Operand: tensor.BF16, Accumulate: (i+j)%2 == 0}, uint64(i*100+j))
					if j%4 == 1 {
						p.biased(2)
					}
					p.check(t, p.dst, p.run(engines[(i+j)%2]))
				}
			}
		}
	})
}

func TestF64ProductMatchesTripleLoop(t *testing.T) {
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		one, many := newEngine(t, tier, 1), newEngine(t, tier, 3)
		for _, form := range forms {
			for _, add := range []bool{false, true} {
				p := newProblem(form, 37, 141, 901, tensor.F64, tensor.F64, tensor.F64,
					device.MatMulOptions{Operand: tensor.F64, Accumulate: add}, 3)
				p.check(t, p.dst, p.run(one))
				p.biased(3).check(t, p.dst, p.run(many))
				if !slices.Equal(p.run(one).F64(), p.run(many).F64()) {
					t.Errorf("%v: the bits depend on the number of threads", p)
				}
			}
		}
	})
}

func TestBitsDoNotDependOnThreads(t *testing.T) {
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		one, many := newEngine(t, tier, 1), newEngine(t, tier, 3)
		for _, form := range forms {
			for _, operand := range half {
				p := newProblem(form, 601, 563, 300, tensor.F32, tensor.BF16, tensor.F32,
					device.MatMulOptions{Operand: operand}, 5)
				a, b := p.run(one), p.run(many)
				for i, v := range a.F32() {
					if math.Float32bits(v) != math.Float32bits(b.F32()[i]) {
						t.Fatalf("%v: element %d is %v with 1 thread, %v with 3", p, i, v, b.F32()[i])
					}
				}
			}
		}
	})
}

// A NaN or an infinity in an operand reaches exactly the rows and columns that depend on it, whatever was in scratch
// memory before.
func TestNonFiniteValuesPropagateAndStayInTheirRow(t *testing.T) {
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		e := newEngine(t, tier, 1)
		for _, form := range forms {
			for _, operand := range append(half, tensor.TF32) {
				for _, bad := range []float64{math.NaN(), math.Inf(1)} {
					p := newProblem(form, 18, 37, 21, tensor.F32, tensor.BF16, tensor.BF16,
						device.MatMulOptions{Operand: operand}, 9)
					row, q := 15, 20
					i := row*p.k + q
					if form == device.TN {
						i = q*p.m + row
					}
					p.a.SetFloat64(i, bad)
					for range 2 { // the second time, scratch memory holds them
						out := p.run(e)
						for i := range out.Len() {
							v := out.Float64(i)
							if finite := !math.IsNaN(v) && !math.IsInf(v, 0); finite == (i/p.n == row) {
								t.Fatalf("%v with %v in row %d: dst[%d,%d] = %v", p, bad, row, i/p.n, i%p.n, v)
							}
						}
					}
					p.a.SetFloat64(i, 1)
					p.check(t, p.dst, p.run(e))
				}
			}
		}
	})
}

func TestEmptyProducts(t *testing.T) {
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		e := newEngine(t, tier, 1)
		for _, form := range forms {
			for _, s := range [][3]int{{0, 5, 3}, {5, 0, 3}, {5, 7, 0}} {
				for _, add := range []bool{false, true} {
					p := newProblem(form, s[0], s[1], s[2], tensor.F32, tensor.BF16, tensor.F32,
						device.MatMulOptions{Operand: tensor.BF16, Accumulate: add}, 1)
					p.check(t, p.dst, p.run(e))
				}
			}
		}
	})
}

func TestMatMulAllocatesNothing(t *testing.T) {
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		e := newEngine(t, tier, 2)
		for _, form := range forms {
			p := newProblem(form, 100, 64, 70, tensor.F32, tensor.BF16, tensor.BF16,
				device.MatMulOptions{Operand: tensor.BF16}, 1)
			if n := filetest.AllocsPerRun(10, func() { e.MatMul(p.dst, p.a, p.b, p.form, p.opt) }); n != 0 {
				t.Errorf("%v: %v allocations, want 0", p, n)
			}
		}
		if n := e.ScratchBytes(); n > 16<<20 {
			t.Errorf("%d bytes of scratch memory for 2 threads", n)
		}
	})
}

func TestMisfitsPanic(t *testing.T) {
	e := newEngine(t, isa.Generic, 1)
	f := func(rows, cols int) *tensor.Tensor { return empty(tensor.F32, rows, cols) }
	for name, call := range map[string]func(){
		"inner":   func() { e.MatMul(f(2, 3), f(2, 4), f(5, 3), device.NN, device.MatMulOptions{Operand: tensor.F32}) },
		"outer":   func() { e.MatMul(f(2, 3), f(2, 4), f(4, 4), device.NN, device.MatMulOptions{Operand: tensor.F32}) },
		"operand": func() { e.MatMul(f(2, 3), f(2, 4), f(4, 3), device.NN, device.MatMulOptions{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}
