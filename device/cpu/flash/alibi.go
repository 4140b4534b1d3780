package flash

import (
	"math"

	"anneal/tensor"
)

// ALiBi (Press et al. 2022, arXiv 2108.12409) subtracts slope·(i−j) from the score of query i and key j. Here the
// subtraction is part of the product of queries and keys, because a few words are put before their elements:
//
//	q·k + σ·(j−ref) − σ·(i−ref),   σ = slope/scale, ref a position near the queries
//
// σ is split into a sum of numbers with few bits, so that their products with distances, and the differences of
// these, are exact, until the distance is so large that the score's exponential is 0 or its last bits do not matter.
// Words of one element hold numbers of 12 and 24 bits (4 words). Pairs of BF16 hold numbers of 8, 8 and 8 bits, and
// each distance as two numbers (5 words, 6 in groups of 4, 10 on matrix units). The cost is as many more steps in one
// of two products forward, and of five backward.

// lead returns the number of words before those of a query or key. The last slope of them are part of the product.
func (k *kernels[T]) lead(s *shape) (lead, slope int) {
	if s.slopes == nil {
		return 0, 0
	}
	if k.attend != nil {
		return k.tileN, 16 // one step of matrix units; unused words are 0
	}
	return k.tileN, roundUp(3+k.pair, k.group/k.pair)
}

// leadQueries writes the leading words of n queries of unit q, from number from on, to rows of x, packed across.
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

// leadKeys writes the leading words of the keys of a tile.
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

// addends writes pair number n of factors: one word each, or the first elements of two words on matrix units, which
// sum the first and second elements of words separately.
func (k *kernels[T]) addends(at []T, n int, a, b tensor.BFloat16) {
	if k.attend == nil {
		at[n] = pairOf[T](a, b)
		return
	}
	at[2*n], at[2*n+1] = pairOf[T](a, 0), pairOf[T](b, 0)
}

// halve returns x as the sum of a number of 12 bits and one with the precision of T.
func halve[T tensor.Number](x float64) (high, low T) {
	h := math.Float32frombits(math.Float32bits(float32(x)) &^ (1<<12 - 1))
	return T(h), T(x - float64(h))
}

// split returns x as the sum of two BF16 numbers.
func split(x float64) (high, low tensor.BFloat16) {
	high = tensor.BF16FromFloat32(float32(x))
	return high, tensor.BF16FromFloat32(float32(x - float64(high.Float32())))
}

// pairOf returns the word that holds two elements.
func pairOf[T tensor.Number](a, b tensor.BFloat16) T {
	return T(math.Float32frombits(uint32(a) | uint32(b)<<16))
}
