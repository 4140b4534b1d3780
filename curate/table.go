package curate

import (
	"math/bits"
	"math/rand/v2"
)

// table counts hashes. It is emptied in no time: a slot of an older generation is free.
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

// scatter spreads hashes over tables. It is another number in each process, so that no text can be made whose hashes
// meet in one place; what is counted does not depend on it.
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

// sizeFor is the least power of two from 64 on that is not below n.
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

// first returns the value that came with the first of a hash; of a new one it is this one.
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
