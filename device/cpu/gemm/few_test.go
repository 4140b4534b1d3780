package gemm

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// A row of the result does not depend on the number of rows. Generating with a cache, which multiplies one row at a
// time, relies on this.
func TestFewRowsAreThoseOfMany(t *testing.T) {
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		e := newEngine(t, tier, 2)
		rapid.Check(t, func(t *rapid.T) {
			pick := func(name string, from ...tensor.DType) tensor.DType {
				return rapid.SampledFrom(from).Draw(t, name)
			}
			n := rapid.IntRange(1, 200).Draw(t, "n")
			k := 8 * rapid.IntRange(1, 100).Draw(t, "k/8")
			if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
				k += rapid.IntRange(1, 7).Draw(t, "k%8")
			}
			opt := device.MatMulOptions{
				Operand:    pick("operand", tensor.BF16, tensor.BF16, tensor.F32, tensor.F16, tensor.TF32),
				Accumulate: rapid.Bool().Draw(t, "accumulate"),
				Scale:      rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "scale"),
			}
			const many = 33
			all := newProblem(device.NT, many, n, k, pick("a", half...), pick("b", half...), pick("dst", half...), opt,
				rapid.Uint64().Draw(t, "seed"))
			if rapid.Bool().Draw(t, "bias") {
				all.biased(1)
			}
			want := all.run(e)
			m := rapid.IntRange(1, 19).Draw(t, "m")
			from := rapid.IntRange(0, many-m).Draw(t, "from")
			part, a, was := want.Slice(from, from+m), all.a.Slice(from, from+m), all.dst.Slice(from, from+m)
			some := &problem{device.NT, m, n, k, &a, all.b, &was, all.opt}
			if got := some.run(e); !bytes.Equal(got.Raw(), part.Raw()) {
				t.Fatalf("%v: rows %d to %d of %d are others when they are computed alone", some, from, from+m, many)
			}
		})
	})
}

func TestEveryNumberOfFewRowsIsThatOfMany(t *testing.T) { everyNumberOfFewRowsIsThatOfMany(t) }

// everyNumberOfFewRowsIsThatOfMany checks this for every number of rows that has kernels, over two blocks of K and
// every kind of weights.
func everyNumberOfFewRowsIsThatOfMany(t *testing.T) {
	t.Helper()
	const many, n, k = fewRows + 17, 40, 424
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		e := newEngine(t, tier, 2)
		for _, operand := range []tensor.DType{tensor.F32, tensor.BF16} {
			for _, weights := range []tensor.DType{tensor.F32, tensor.BF16} {
				opt := device.MatMulOptions{Operand: operand}
				all := newProblem(device.NT, many, n, k, tensor.F32, weights, tensor.F32, opt, 1)
				want := all.run(e)
				for m := 1; m <= fewRows+1; m++ {
					part, a, was := want.Slice(0, m), all.a.Slice(0, m), all.dst.Slice(0, m)
					some := &problem{device.NT, m, n, k, &a, all.b, &was, all.opt}
					if got := some.run(e); !bytes.Equal(got.Raw(), part.Raw()) {
						t.Errorf("%v: the first %d rows of %d are others when they are computed alone", some, m, many)
					}
				}
			}
		}
	})
}
