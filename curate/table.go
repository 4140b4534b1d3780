package curate

import (
	"math/bits"
	"math/rand/v2"
)

// table counts hashes. Emptying it takes no time, because slots of an older generation are free.
type table struct {
	slots      []slot
	shift      int
	generation uint32
}

type slot struct {
	hash       uint64
	generation uint32
	n          uint32
}

// scatter spreads hashes over tables. It differs from process to process, so that nobody can construct a text whose
// hashes all collide. The counts do not depend on it.
var scatter = rand.Uint64() | 1

// reset empties the table and makes room for n hashes.
func (t *table) reset(n int) {
	t.generation++
	size := sizeFor(2 * n)
	if size > len(t.slots) {
		t.slots = make([]slot, size)
		t.generation = 1
	} else if t.generation == 0 {
		clear(t.slots)
		t.generation = 1
	}
	t.shift = 64 - log2(size)
}

// sizeFor returns the smallest power of two that is at least n and at least 64.
func sizeFor(n int) int { return 1 << bits.Len(uint(max(n, 64)-1)) }

func log2(size int) int { return bits.TrailingZeros(uint(size)) }

// add adds one to the count of a hash and returns its slot.
func (t *table) add(hash uint64) uint32 {
	slots := t.slots[:1<<(64-t.shift)]
	for i := hash * scatter >> t.shift; ; i++ {
		i &= uint64(len(slots) - 1)
		s := &slots[i]
		if s.generation != t.generation {
			*s = slot{hash, t.generation, 1}
			return uint32(i)
		}
		if s.hash == hash {
			s.n++
			return uint32(i)
		}
	}
}

// first returns the value of the first occurrence of a hash; for a new hash, the given value.
func (t *table) first(hash uint64, value uint32) uint32 {
	slots := t.slots[:1<<(64-t.shift)]
	for i := hash * scatter >> t.shift; ; i++ {
		i &= uint64(len(slots) - 1)
		s := &slots[i]
		if s.generation != t.generation {
			*s = slot{hash, t.generation, value}
			return value
		}
		if s.hash == hash {
			return s.n
		}
	}
}
