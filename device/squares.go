package device

import "anneal/tensor"

// Stretch is the number of consecutive elements whose squares have their own sum. The parts of a tensor that is cut at
// multiples of Stretch have the same sums as the whole.
const Stretch = 1 << 14

// Stretches returns the number of stretches of a tensor; the last one may be shorter.
func Stretches(t *tensor.Tensor) int { return (t.Len() + Stretch - 1) / Stretch }

// Squares sums squares on a device. It keeps the memory for the sums of stretches, so that no call allocates. The
// zero value is ready.
type Squares struct{ sums, totals []float64 }

// Sum returns Σ t² over all tensors in float64: the sums of the tensors (Each), added in order.
func (s *Squares) Sum(d Device, list ...*tensor.Tensor) float64 {
	total := 0.0
	for _, sum := range s.Each(d, list...) {
		total += sum
	}
	return total
}

// Each returns Σ t² of each tensor in float64: the sums of its stretches, added in order. A sum is not finite if an
// element of its tensor is not. The sums are valid until the next call.
func (s *Squares) Each(d Device, list ...*tensor.Tensor) []float64 {
	n := 0
	for _, t := range list {
		n += Stretches(t)
	}
	if len(s.sums) < n {
		s.sums = make([]float64, n)
	}
	if len(s.totals) < len(list) {
		s.totals = make([]float64, len(list))
	}
	d.SquareSums(s.sums[:n], list...)
	from := 0
	for i, t := range list {
		to := from + Stretches(t)
		s.totals[i] = 0
		for _, x := range s.sums[from:to] {
			s.totals[i] += x
		}
		from = to
	}
	return s.totals[:len(list)]
}
