package gemm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// A product that the caller declares symmetric has the same bits as without the declaration, whichever parts are not
// computed.
func TestSymmetricProductsAreTheFullOnes(t *testing.T) {
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		e := newEngine(t, tier, 2)
		rapid.Check(t, func(t *rapid.T) {
			m := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(90, 260),
				rapid.SampledFrom([]int{32, 96, 128, 384})).Draw(t, "m")
			k := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(180, 210)).Draw(t, "k")
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
			opt := device.MatMulOptions{
				Operand: rapid.SampledFrom(storage).Draw(t, "operand"), Accumulate: rapid.Bool().Draw(t, "accumulate"),
			}
			source, result := rapid.SampledFrom(storage).Draw(t, "a"), rapid.SampledFrom(storage).Draw(t, "dst")
			if rapid.IntRange(0, 9).Draw(t, "f64") == 0 {
				source, result, opt.Operand = tensor.F64, tensor.F64, tensor.F64
			}
			form := rapid.SampledFrom([]device.Form{device.NT, device.TN}).Draw(t, "form")
			a := random(r, source, m, k)
			if form == device.TN {
				a = random(r, source, k, m)
			}
			full := random(r, result, m, m)
			for i := range m {
				for j := range i {
					full.SetFloat64(i*m+j, full.Float64(j*m+i))
				}
			}
			half := empty(result, m, m)
			copy(half.Raw(), full.Raw())
			e.MatMul(full, a, a, form, opt)
			opt.Symmetric = true
			e.MatMul(half, a, a, form, opt)
			if !bytes.Equal(half.Raw(), full.Raw()) {
				t.Fatalf("%v %d×%d×%d %v·%v %+v: other bits than the full product", form, m, m, k, source, result, opt)
			}
		})
	})
}

// The cut of a symmetric product omits nearly half of it, if that pays, and its count of tasks is exact.
func TestSymmetricProductsAreHalfTheWork(t *testing.T) {
	z := vectorSizes(12, 1)
	for _, m := range []int{384, 768, 1024} {
		c := choose(device.NT, m, m, m, &z, 2, true)
		done, tasks := 0, 0
		for task := range c.down * c.across {
			if s := c.span(task/c.down, task%c.down); !c.mirrored(s) {
				done += s.rows * s.cols
				tasks++
			}
		}
		if share := float64(done) / float64(m*m); share < 0.5 || share > 0.7 {
			t.Errorf("%d×%d is cut into %d×%d: %.2f of it is computed, want little more than half",
				m, m, c.down, c.across, share)
		}
	}
	for down := range 12 {
		for across := range 12 {
			want := 0
			for r := 1; r <= down; r++ {
				want += (r*across + down - 1) / down
			}
			if got := staircase(down, across); got != want {
				t.Errorf("staircase(%d, %d) = %d, want %d", down, across, got, want)
			}
		}
	}
}
