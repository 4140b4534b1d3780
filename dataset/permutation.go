package dataset

import "math/bits"

// permutation is a bijection of 0…n−1 that depends on a key. It is a Feistel network of eight rounds over the
// smallest even number of bits that holds n−1 (Luby and Rackoff 1988), with cycle walking: a value outside 0…n−1 is
// permuted again until it is inside (Black and Rogaway 2002). Its memory does not grow with n; a value takes fewer
// than four passes on average.
type permutation struct {
	n    uint64
	half uint // bits of each half
	keys [8]uint64
}

// newPermutation returns the permutation of n ≥ 1 values for (seed, epoch).
func newPermutation(n, seed, epoch uint64) permutation {
	p := permutation{n: n, half: uint(bits.Len64(n-1)+1) / 2}
	key := mix(mix(seed) + epoch)
	for i := range p.keys {
		key += 0x9e3779b97f4a7c15
		p.keys[i] = mix(key)
	}
	return p
}

// at returns the value at position i < n.
func (p *permutation) at(i uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	for {
		left, right := i>>p.half, i&mask
		for _, k := range p.keys {
			left, right = right, left^mix(right^k)&mask
		}
		if i = left<<p.half | right; i < p.n {
			return i
		}
	}
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which each input bit flips each output
// bit with probability near one half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
