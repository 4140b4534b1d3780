package conformance

import (
	"fmt"
	"math"

	"anneal/tensor"
)

// compare returns an error unless got is close to exact. In F64 the allowance is 1e-12 of the largest value. Otherwise
// it is twice (four times for gradients, which are sums of products of rounded values) the largest error of the float32
// formula rounded to got's storage, plus a few units of float32 for other orders of addition: FlashAttention's rule for
// kernels in low precision. For gradients that error is at least half a unit of the storage at the largest value,
// since their terms are rounded to as many bits, even if the error of the formula is smaller by chance. Both grow by
// the error of cancellation, see call.lost. Values that are not finite must be at the same places.
func (c *call) compare(got *tensor.Tensor, exact []float64, naive [][]float64) error {
	if got.Len() != len(exact) {
		return fmt.Errorf("%v has not the %d elements of the reference", got, len(exact))
	}
	far, worst := 0.0, 0
	for i, want := range exact {
		g := element(got, i)
		if g == want || math.IsNaN(g) && math.IsNaN(want) {
			continue
		}
		if d := math.Abs(g - want); !(d <= far) {
			far, worst = d, i
		}
		if math.IsNaN(far) || math.IsInf(far, 0) {
			break
		}
	}
	if allowed := c.allowance(got.DType(), exact, naive); !(far <= allowed) {
		return fmt.Errorf("element %d of %v is %v, want %v: off by %.3g, allowed %.3g",
			worst, got, element(got, worst), exact[worst], far, allowed)
	}
	return nil
}

// element returns element i of t.
func element(t *tensor.Tensor, i int) float64 {
	if t.DType() == tensor.I32 {
		return float64(t.I32()[i])
	}
	return t.Float64(i)
}

func (c *call) allowance(dt tensor.DType, exact []float64, naive [][]float64) float64 {
	if c.exactly || dt == tensor.I32 {
		return 0
	}
	var top, far float64
	for _, want := range exact {
		if a := math.Abs(want); a < math.Inf(1) {
			top = math.Max(top, a)
		}
	}
	if dt == tensor.F64 {
		return 1e-12*top + c.lost(0x1p-51, top)
	}
	rounded := tensor.View(dt, make([]byte, len(exact)*dt.Size()), len(exact))
	for _, n := range naive {
		for i, v := range n {
			rounded.SetFloat64(i, v)
			if d := math.Abs(rounded.Float64(i) - exact[i]); d < math.Inf(1) {
				far = math.Max(far, d)
			}
		}
	}
	factor := c.factor
	if factor == 0 {
		factor = 2
	}
	if factor > 2 {
		far = math.Max(far, halfUnit(dt, top))
	}
	switch c.rounds {
	case tensor.BF16:
		far += top / 256
	case tensor.F8E4M3:
		far += top / 16
	case tensor.F16:
		far += top/2048 + 0x1p-25
	}
	return factor*far + 1e-6*top + c.lost(0x1p-22, top) + 1e-37
}

// halfUnit returns the largest error of rounding numbers of up to top to a narrow format; 0 for others.
func halfUnit(dt tensor.DType, top float64) float64 {
	bits := map[tensor.DType]int{tensor.F16: 11, tensor.BF16: 8}[dt]
	if bits == 0 || top == 0 {
		return 0
	}
	_, exponent := math.Frexp(top) // top is at least 2^(exponent−1)
	return math.Ldexp(1, exponent-1-bits)
}

// lost returns the error of cancellation that results of up to top may have: a few units of the terms. For a row, x −
// mean(x) loses as many digits as spread has, and mean(x²) − mean(x)² twice as many, so its sums must be in float64.
func (c *call) lost(unit, top float64) float64 {
	return unit*(c.terms+c.spread*top) + 0x1p-51*c.spread*c.spread*top
}

// largest returns the largest magnitude of x.
func largest(x *tensor.Tensor) float64 {
	most := 0.0
	for i := range x.Len() {
		most = max(most, math.Abs(x.Float64(i)))
	}
	return most
}
