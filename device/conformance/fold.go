package conformance

import (
	"fmt"
	"math"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// folds compares Fold with a loop, bit for bit, on numbers of either sign, zeros, NaN and infinities. It tries each
// number of terms, including more than a kernel adds at once, and lengths around those of chunks; dst is a separate
// tensor or one of the terms.
func folds(t *testing.T, d bench, act, wide tensor.DType) {
	if act == tensor.F16 {
		return // not a storage of terms
	}
	const stretch = 16 << 10
	for _, count := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33} {
		for _, n := range []int{0, 1, 7, 1025, stretch + 3} {
			if count > 9 && n > 7 {
				continue
			}
			aliases := 0
			if act == wide && n <= 1025 {
				aliases = count
			}
			for alias := -1; alias < aliases; alias++ {
				for _, add := range []bool{false, true} {
					d.memory.Release(0)
					what := fmt.Sprintf("%v: %d terms of %d, dst is term %d, add %v", act, count, n, alias, add)
					foldsTo(t, d, what, randomTerms(d, act, wide, count, n, alias), add)
				}
			}
		}
	}
}

// A foldCall holds the arguments of a call of Fold.
type foldCall struct {
	dst   *tensor.Tensor
	terms []*tensor.Tensor
}

func randomTerms(d bench, act, wide tensor.DType, count, n, alias int) foldCall {
	c := foldCall{dst: d.of(wide, oddNumbers(n, 50), n)}
	for i := range count {
		if i == alias {
			c.terms = append(c.terms, c.dst)
			continue
		}
		c.terms = append(c.terms, d.of(act, oddNumbers(n, 51+uint64(i)), n))
	}
	return c
}

// oddNumbers returns n normal numbers of which some are −0, and a few are not finite.
func oddNumbers(n int, seed uint64) []float64 {
	x := normal(n, seed)
	rng := tensor.NewRNG(seed, tensor.PurposeInit, 2)
	for i := range x {
		switch kind := rng.Uint32(uint64(i)); {
		case i == 0 || kind%4 == 0:
			x[i] = math.Copysign(0, -1)
		case kind%64 == 1:
			x[i] = nan
		case kind%64 == 2:
			x[i] = math.Copysign(inf, x[i])
		case kind%64 == 3:
			x[i] *= 1e-40
		}
	}
	return x
}

func foldsTo(t *testing.T, d bench, what string, c foldCall, add bool) {
	t.Helper()
	want := make([]float64, c.dst.Len())
	for i := range want {
		sum, terms := c.terms[0].Float64(i), c.terms[1:]
		if add {
			sum, terms = c.dst.Float64(i), c.terms
		}
		for _, term := range terms {
			if sum += term.Float64(i); c.dst.DType() == tensor.F32 {
				sum = float64(float32(sum))
			}
		}
		want[i] = sum
	}
	d.Fold(c.dst, c.terms, add)
	d.wait(t)
	sameNumbers(t, what, c.dst, want)
}

// sameNumbers demands the same bits, except that all NaN are one.
func sameNumbers(t *testing.T, what string, got *tensor.Tensor, want []float64) {
	t.Helper()
	for i, w := range want {
		g := got.Float64(i)
		if math.Float64bits(g) != math.Float64bits(w) && !(math.IsNaN(g) && math.IsNaN(w)) {
			t.Fatalf("%s: element %d is %v, want %v (signs matter)", what, i, g, w)
		}
	}
}

// negativeZeros checks that device.NegativeZero sets every number to −0, which changes no number that is added to it.
func negativeZeros(t *testing.T, d bench, act, _ tensor.DType) {
	x, want := d.of(act, oddNumbers(1025, 60)), make([]float64, 1025)
	device.NegativeZero(d.Device, x)
	d.wait(t)
	for i := range want {
		want[i] = math.Copysign(0, -1)
	}
	sameNumbers(t, act.String(), x, want)
}
