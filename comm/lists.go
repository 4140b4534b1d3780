package comm

import (
	"fmt"
	"slices"

	"anneal/tensor"
)

// Place returns the index of a rank in the list of ranks that Group is called with. It is for transports.
func Place(c Comm, ranks []int) (int, error) {
	for i, r := range ranks {
		if r < 0 || r >= c.Size() {
			return 0, fmt.Errorf("there is no group of the ranks %v: rank %d is not one of %d", ranks, r, c.Size())
		}
		if slices.Contains(ranks[:i], r) {
			return 0, fmt.Errorf("rank %d is twice in the list of a group: %v", r, ranks)
		}
	}
	me := slices.Index(ranks, c.Rank())
	if me < 0 {
		return 0, fmt.Errorf("rank %d asks for a group of the ranks %v, to which it does not belong", c.Rank(), ranks)
	}
	return me, nil
}

// Keep copies lists of tensors, reusing the memory of earlier lists, which may be nil. It is for transports.
func Keep(to, from [][]tensor.Tensor) [][]tensor.Tensor {
	to = slices.Grow(to[:0], len(from))[:len(from)]
	for r, list := range from {
		to[r] = append(to[r][:0], list...)
	}
	return to
}
