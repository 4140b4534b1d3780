package flash

import (
	"math"

	"anneal/tensor"
)

// ALiBi (Press et al. 2022, arXiv 2108.12409) takes slope·(i−j) off the score of query i and key j. Here it is part of the product of
// queries and keys, before whose elements a few words more are put:
//
//	q·k + σ·(j−ref) − σ·(i−ref),   σ = slope/scale, ref a position near the queries
//
// σ is a sum of numbers of few bits, so that their products with distances are exact, and so are the differences of
// these, until a distance is so large that the score's exponential is 0 or its last bits do not count: numbers of 12 and 24 bits in
// words of one element (4 words), of 8, 8 and 8 in pairs of BF16, which hold distances as two (5 words, 10 on matrix units). The cost is as many steps,
// beside those of a head's size, in one of two products forward, of five backward.

// lead returns how many words stand before those of a query or key; the last of them, as many as slope says, are part of the product.
func (k *kernels[T]) lead(s *shape) (lead, slope int) {
	if s.slopes == nil {
		return 0, 0
	}
	if k.attend != nil {
		return k.tileN, 16 // a step of matrix units; what is not used is 0
	}
	return k.tileN, 3 + k.pair
}

// leadQueries writes the words before queries of unit q that stand in rows of x, held across: n of them, from number from on.
func (k *kernels[T]) leadQueries(x []T, ld int, s *shape, q *unit, from, n, ref int) {
	lead, slope := k.lead(s)
	if slope == 0 {
		return
	}
	sigma := s.slopes[q.head] / s.ScoreScale()
	for i := range n {
		clear(x[i*ld+lead-slope : i*ld+lead])
		at, distance := x[i*ld+lead-slope:], float64(q.First+(from+i)*q.Step-ref)
		if k.pair == 1 {
			high, low := halve[T](sigma)
			at[0], at[1], at[2], at[3] = high, -high*T(distance), low, -low*T(distance)
			continue
		}
		rest := sigma
		for n := range 3 {
			part := tensor.BF16FromFloat32(float32(rest))
			rest -= float64(part.Float32())
			a, b := split(-float64(part.Float32()) * distance)
			k.addends(at, 2*n, part, a)
			if n < 2 {
				k.addends(at, 2*n+1, part, b)
			}
		}
	}
}

// leadKeys writes the words before the keys of a tile.
func (k *kernels[T]) leadKeys(x []T, ld int, s *shape, t *keyTile, ref int) {
	lead, slope := k.lead(s)
	if slope == 0 {
		return
	}
	one := tensor.BF16FromFloat32(1)
	for i := range t.runs {
		sp := &t.runs[i]
		for r := range sp.Count {
			clear(x[(sp.at+r)*ld+lead-slope : (sp.at+r)*ld+lead])
			at, distance := x[(sp.at+r)*ld+lead-slope:], sp.First+r*sp.Step-ref
			if k.pair == 1 {
				at[0], at[1], at[2], at[3] = T(distance), 1, T(distance), 1
				continue
			}
			h, l := split(float64(distance))
			for n := range 5 {
				if n%2 == 0 {
					k.addends(at, n, h, one)
				} else {
					k.addends(at, n, l, one)
				}
			}
		}
	}
}

// addends writes number n of the pairs whose products are to meet: one word, or on matrix units, which add the first elements of words and the
// second ones apart, the first elements of two.
func (k *kernels[T]) addends(at []T, n int, a, b tensor.BFloat16) {
	if k.attend == nil {
		at[n] = pairOf[T](a, b)
		return
	}
	at[2*n], at[2*n+1] = pairOf[T](a, 0), pairOf[T](b, 0)
}

// halve returns x as the sum of a number of 12 bits and one of as many as T has.
func halve[T tensor.Number](x float64) (high, low T) {
	h := math.Float32frombits(math.Float32bits(float32(x)) &^ (1<<12 - 1))
	return T(h), T(x - float64(h))
}

// split returns x as the sum of two numbers.
func split(x float64) (high, low tensor.BFloat16) {
	high = tensor.BF16FromFloat32(float32(x))
	return high, tensor.BF16FromFloat32(float32(x - float64(high.Float32())))
}

// pairOf returns the word of two elements.
func pairOf[T tensor.Number](a, b tensor.BFloat16) T {
	return T(math.Float32frombits(uint32(a) | uint32(b)<<16))
}
