package model

import (
	"math"
	"math/bits"
	"slices"
)

// How candidates are ordered: a heap finds the K best if there is a top K; otherwise a radix sort orders all, in less
// than half the time of a comparison sort. Every method gives the same order, so the token drawn does not depend on
// the method.

// compare orders candidates by descending logit, then by id.
func compare(a, b candidate) int {
	switch {
	case a.p > b.p || a.p == b.p && a.id < b.id:
		return -1
	default:
		return 1
	}
}

// descending returns the topK most likely candidates, or all if topK is 0, in the order of compare. The candidates must
// be in the order of their ids.
func (x *Sampler) descending(topK int) []candidate {
	if topK > 0 && topK < len(x.probs) {
		best := x.best(topK)
		slices.SortFunc(best, compare)
		return best
	}
	return x.radix()
}

// best returns the k most likely candidates. They are a heap with the least likely on top.
func (x *Sampler) best(k int) []candidate {
	heap := append(x.spare[:0], x.probs[:k]...)
	x.spare = heap
	for i := k/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for _, c := range x.probs[k:] {
		if c.p > heap[0].p { // a candidate with an equal logit has a higher id than all in the heap
			heap[0] = c
			sink(heap, 0)
		}
	}
	return heap
}

// sink restores the order of a heap below element i.
func sink(heap []candidate, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && compare(heap[child], heap[child+1]) < 0 {
			child++
		}
		if compare(heap[child], heap[i]) < 0 {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

const (
	digitBits = 11
	digits    = (64 + digitBits - 1) / digitBits
)

// radix sorts all candidates, by digits of their logits from the last to the first. It is stable, so candidates with
// equal logits stay in the order of their ids. A digit that is the same for all takes no pass: the last digits of FP32
// logits are zero.
func (x *Sampler) radix() []candidate {
	from := x.probs
	x.spare = slices.Grow(x.spare[:0], len(from))[:len(from)]
	to := x.spare
	varying := uint64(0)
	first := descendingKey(from[0].p)
	for _, c := range from {
		varying |= descendingKey(c.p) ^ first
	}
	var starts [1 << digitBits]int32
	for d := bits.TrailingZeros64(varying) / digitBits; d < digits; d++ {
		shift := d * digitBits
		if varying>>shift&(1<<digitBits-1) == 0 {
			continue
		}
		clear(starts[:])
		for _, c := range from {
			starts[descendingKey(c.p)>>shift&(1<<digitBits-1)]++
		}
		sum := int32(0)
		for i, n := range starts {
			starts[i] = sum
			sum += n
		}
		for _, c := range from {
			at := &starts[descendingKey(c.p)>>shift&(1<<digitBits-1)]
			to[*at] = c
			*at++
		}
		from, to = to, from
	}
	return from
}

// descendingKey returns a number that is smaller the larger p is, and the same for both zeros.
func descendingKey(p float64) uint64 {
	b := math.Float64bits(p + 0)
	if b>>63 != 0 {
		return b
	}
	return ^b &^ (1 << 63)
}
