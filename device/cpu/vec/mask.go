package vec

import "anneal/tensor"

// Mask holds the constants of Table.Mask, in the order in which the assembly reads them.
type Mask[T Float] struct {
	Counter [4]uint32 // of the first block; the first word is a multiple of 16, and does not overflow within a row
	Key     [2]uint32
	Keep    uint32 // of 65536
	Scale   T
}

// maskGroup is the number of factors from 16 blocks.
const maskGroup = 128

// mask writes factors for len(dst), a multiple of 128.
func mask[T Float](dst []T, m *Mask[T]) {
	c := *m
	var random [maskGroup]uint32
	for from := 0; from < len(dst); from += maskGroup {
		halves(random[:], &c)
		for i, r := range random {
			dst[from+i] = 0
			if r < m.Keep {
				dst[from+i] = m.Scale
			}
		}
		c.Counter[0] += 16
	}
}

// halves writes 16-bit numbers for len(dst), a multiple of 128. Of the 16 blocks of a group, number 32·w + 16·h + l
// is half h (0 the lower) of word w of block l; in this order vectors need no permutation.
func halves[T Float](dst []uint32, m *Mask[T]) {
	c := m.Counter
	for from := 0; from < len(dst); from += maskGroup {
		group := dst[from : from+maskGroup]
		for l := range uint32(16) {
			for w, word := range tensor.Philox([4]uint32{c[0] + l, c[1], c[2], c[3]}, m.Key) {
				for h := range 2 {
					group[32*w+16*h+int(l)] = word >> (16 * h) & 0xffff
				}
			}
		}
		c[0] += 16
	}
}
