package tokenizer

import "hash/maphash"

// interner numbers byte strings 0, 1, 2, … in order of arrival: an open-addressing table over one arena, without a
// pointer per string. The zero value is usable.
type interner struct {
	arena []byte
	start []uint64 // string i is arena[start[i]:start[i+1]]
	slots []internSlot
	seed  maphash.Seed
}

type internSlot struct {
	tag   uint32 // high bits of the hash
	index uint32 // of the string, plus one; 0 means free
}

func (t *interner) len() int { return max(len(t.start)-1, 0) }

// size returns the memory of the interner in bytes.
func (t *interner) size() int64 {
	return int64(cap(t.arena)) + 8*int64(cap(t.start)) + 8*int64(len(t.slots))
}

// at returns string i, which must not be modified.
func (t *interner) at(i int) []byte { return t.arena[t.start[i]:t.start[i+1]:t.start[i+1]] }

// find returns the number of b, or -1.
func (t *interner) find(b []byte) int {
	if len(t.slots) == 0 {
		return -1
	}
	i, _, _ := t.probe(b)
	return i
}

// add returns the number of b, which is the next one if b is new.
func (t *interner) add(b []byte) int {
	if 4*t.len() >= 3*len(t.slots) {
		t.grow()
	}
	i, slot, tag := t.probe(b)
	if i >= 0 {
		return i
	}
	i = t.len()
	t.arena = append(t.arena, b...)
	t.start = append(t.start, uint64(len(t.arena)))
	t.slots[slot] = internSlot{tag, uint32(i) + 1}
	return i
}

// probe looks up b; if it is absent, i is -1 and slot is its place.
func (t *interner) probe(b []byte) (i, slot int, tag uint32) {
	h := maphash.Bytes(t.seed, b)
	tag = uint32(h >> 32)
	mask := len(t.slots) - 1
	for slot = int(h) & mask; ; slot = (slot + 1) & mask {
		s := t.slots[slot]
		if s.index == 0 {
			return -1, slot, tag
		}
		if s.tag == tag && string(t.at(int(s.index)-1)) == string(b) {
			return int(s.index) - 1, slot, tag
		}
	}
}

func (t *interner) grow() {
	if len(t.slots) == 0 {
		t.seed = maphash.MakeSeed()
		t.start = append(t.start, 0)
	}
	t.slots = make([]internSlot, max(16, 2*len(t.slots)))
	mask := len(t.slots) - 1
	for i := range t.len() {
		h := maphash.Bytes(t.seed, t.at(i))
		slot := int(h) & mask
		for t.slots[slot].index != 0 {
			slot = (slot + 1) & mask
		}
		t.slots[slot] = internSlot{uint32(h >> 32), uint32(i) + 1}
	}
}

// reset removes all strings and keeps the memory.
func (t *interner) reset() {
	clear(t.slots)
	t.arena = t.arena[:0]
	t.start = t.start[:min(len(t.start), 1)]
}
