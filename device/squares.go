package device

import "anneal/tensor"

// Stretch is the number of elements whose squares are summed by themselves. A tensor that is cut at multiples of it
// has the same sums in its parts.
const Stretch = 1 << 14

// Stretches returns the number of stretches of a tensor; the last one may be shorter.
func Stretches(t *tensor.Tensor) int { return (t.Len() + Stretch - 1) / Stretch }

// Squares sums squares on a device. It keeps the memory for the sums of stretches, so that no call allocates. The
// zero value is ready.
type Squares struct{ sums []float64 }

// Sum returns Σ t² over all tensors in float64: the sums of stretches, added in order for each tensor, and then the
// sums of the tensors, added in order. It is not finite if any element is not.
func (s *Squares) Sum(d Device, list ...*tensor.Tensor) float64 {
	n := 0
	for _, t := range list {
		n += Stretches(t)
	}
	if len(s.sums) < n {
		s.sums = make([]float64, n)
	}
	d.SquareSums(s.sums[:n], list...)
	total, from := 0.0, 0
	for _, t := range list {
		sum, to := 0.0, from+Stretches(t)
		for _, x := range s.sums[from:to] {
			sum += x
		}
		total, from = total+sum, to
	}
	return total
}
