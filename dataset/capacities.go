package dataset

import "math/bits"

// capacities is a set of integers below a limit: one bit each, then, level by level, one bit for each non-empty word
// of the level below.
type capacities [][]uint64

func newCapacities(limit int) capacities {
	var c capacities
	for n := limit; ; {
		n = (n + 63) / 64
		c = append(c, make([]uint64, n))
		if n <= 1 {
			return c
		}
	}
}

func (c capacities) has(v int) bool { return c[0][v/64]&(1<<(v%64)) != 0 }

func (c capacities) add(v int) {
	for _, level := range c {
		level[v/64] |= 1 << (v % 64)
		v /= 64
	}
}

func (c capacities) remove(v int) {
	for _, level := range c {
		if level[v/64] &^= 1 << (v % 64); level[v/64] != 0 {
			return
		}
		v /= 64
	}
}

// from returns the smallest element of the set that is at least v.
func (c capacities) from(v int) (int, bool) {
	for up := range c {
		if v/64 >= len(c[up]) {
			return 0, false
		}
		if word := c[up][v/64] >> (v % 64); word != 0 {
			v += bits.TrailingZeros64(word)
			for down := up - 1; down >= 0; down-- {
				v = v*64 + bits.TrailingZeros64(c[down][v])
			}
			return v, true
		}
		v = v/64 + 1
	}
	return 0, false
}
