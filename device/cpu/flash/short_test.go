package flash

import (
	"fmt"
	"math"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// Short rows in one call have the bits of rows each in a call of its own, and their scratch memory is predicted.
func TestShortRowsHaveTheirOwnBits(t *testing.T) {
	for _, tier := range isa.Tiers() {
		for _, dt := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F64} {
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
				if n := testing.AllocsPerRun(2, func() { all.run(e) }); n != 0 {
					t.Errorf("%s: %v allocations, want 0", name, n)
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
