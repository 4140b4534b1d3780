package flash

import (
	"fmt"
	"math"
	"testing"

	"anneal/device"
	"anneal/internal/filetest"
	"anneal/internal/isa"
	"anneal/tensor"
)

// Short rows computed in one call, in columns or in shared blocks, have the same bits as rows computed one per call,
// in tiles. Their scratch memory is predicted.
func TestShortRowsHaveTheirOwnBits(t *testing.T) {
	for _, tier := range isa.Tiers() {
		for _, dt := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64} {
			for _, c := range []struct {
				rows, length int
				heads        device.Heads
			}{
				{42, 3, device.Heads{Q: 4, KV: 4, Size: 16}},
				{28, 8, device.Heads{Q: 2, KV: 1, Size: 13}},
				{24, 4, device.Heads{Q: 4, KV: 2, Size: 64}},
				{30, 2, device.Heads{Q: 2, KV: 1, Size: 13}},
				{64, 1, device.Heads{Q: 1, KV: 1, Size: 8}},
				{13, 5, device.Heads{Q: 2, KV: 2, Size: 32}},
				{71, 16, device.Heads{Q: 3, KV: 1, Size: 16}},
				{33, 7, device.Heads{Q: 2, KV: 2, Size: 40}},
			} {
				name := fmt.Sprintf("%v/%v/%d×%d", tier, dt, c.rows, c.length)
				start := make([]int32, c.rows*c.length) // every third row has a second document
				for i := range start {
					if i/c.length%3 == 0 && i%c.length > 1 {
						start[i] = 2
					}
				}
				all := newProblem(dt, c.rows, c.length, c.heads, start, 3)
				e := newEngine(t, tier, 2)
				all.run(e)
				tokens := c.rows * c.length
				if got, want := e.ScratchBytes(), Scratch(tier, 2, dt, tokens, c.heads, all.mask, true); got != want {
					t.Errorf("%s: %d bytes of scratch memory, predicted %d", name, got, want)
				}
				for r := range c.rows {
					from, to := r*c.length, (r+1)*c.length
					one := newProblem(dt, 1, c.length, c.heads, start[from:to], 3)
					*one.qkv, *one.dout = all.qkv.Slice(from, to), all.dout.Slice(from, to)
					one.run(e)
					out, dqkv := all.out.Slice(from, to), all.dqkv.Slice(from, to)
					far := max(farthest(values(&out), values(one.out)), farthest(values(&dqkv), values(one.dqkv)))
					if far != 0 {
						t.Fatalf("%s: row %d is off by %g", name, r, far)
					}
				}
				if n := filetest.AllocsPerRun(2, func() { all.run(e) }); n != 0 {
					t.Errorf("%s: %v allocations, want 0", name, n)
				}
			}
		}
	}
}

// A NaN stays in its row and head, whether rows are in columns or in blocks.
func TestNaNOfAShortRowStaysThere(t *testing.T) {
	for _, tier := range isa.Tiers() {
		for _, dt := range []tensor.DType{tensor.F32, tensor.BF16} {
			p := newProblem(dt, 40, 5, device.Heads{Q: 2, KV: 2, Size: 16}, nil, 3)
			clean := newProblem(dt, 40, 5, p.heads, nil, 3)
			const row, cols = 7, 6 * 16
			p.qkv.SetFloat64((row*5+2)*cols+p.heads.Q*16+3, math.NaN()) // a key of the first head
			e := newEngine(t, tier, 2)
			p.run(e)
			clean.run(e)
			for i := range p.out.Len() {
				got, want := p.out.Float64(i), clean.out.Float64(i)
				if hit := i/32/5 == row && i/32%5 >= 2 && i%32 < 16; math.IsNaN(got) != hit || !hit && got != want {
					t.Fatalf("%v/%v: output %d is %v, want %v; NaN: %v", tier, dt, i, got, want, hit)
				}
			}
			for i := range p.dqkv.Len() {
				if got, want := p.dqkv.Float64(i), clean.dqkv.Float64(i); i/cols/5 != row && got != want {
					t.Fatalf("%v/%v: gradient %d of another row is %v, want %v", tier, dt, i, got, want)
				}
			}
		}
	}
}

func TestFinite(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.F64, tensor.F32, tensor.F16, tensor.BF16} {
		x := zeros(dt, 11)
		for i := range x.Len() {
			x.SetFloat64(i, 60000-12000*float64(i))
		}
		if !finite(x) {
			t.Errorf("%v: finite values are not", dt)
		}
		for i := range x.Len() {
			for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				old := x.Float64(i)
				x.SetFloat64(i, v)
				if finite(x) {
					t.Errorf("%v: %v as element %d is finite", dt, v, i)
				}
				x.SetFloat64(i, old)
			}
		}
	}
}
