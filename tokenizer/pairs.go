package tokenizer

import "cmp"

// pairTable numbers pairs of tokens and stores the count of each and the words that contain it.
type pairTable struct {
	slots []uint32 // number of the pair, plus one; 0 means free
	shift uint
	pairs []pair
}

// pair is two adjacent tokens.
type pair struct {
	key   uint64
	count int64
	words []uint32 // words that contain it, and possibly words that no longer do
}

func newPairTable() *pairTable { return &pairTable{slots: make([]uint32, 1<<16), shift: 48} }

// get returns the number of a pair; a new pair has count 0.
func (t *pairTable) get(key uint64) uint32 {
	mask := uint64(len(t.slots) - 1)
	i := mix(key) >> t.shift
	for ; t.slots[i&mask] != 0; i++ {
		if n := t.slots[i&mask] - 1; t.pairs[n].key == key {
			return n
		}
	}
	t.pairs = append(t.pairs, pair{key: key})
	t.slots[i&mask] = uint32(len(t.pairs))
	if 2*len(t.pairs) > len(t.slots) {
		t.grow()
	}
	return uint32(len(t.pairs) - 1)
}

func (t *pairTable) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	t.shift--
	mask := uint64(len(t.slots) - 1)
	for n := range t.pairs {
		i := mix(t.pairs[n].key) >> t.shift
		for t.slots[i&mask] != 0 {
			i++
		}
		t.slots[i&mask] = uint32(n + 1)
	}
}

// candidate is a pair in the heap, with its count at the time it was added.
type candidate struct {
	count  int64
	key    uint64
	number uint32
}

// before defines the order of merges: larger count first, then smaller ids.
func (a candidate) before(b candidate) bool {
	if c := cmp.Compare(a.count, b.count); c != 0 {
		return c > 0
	}
	return a.key < b.key
}

// candidates is a heap with the next merge first.
type candidates []candidate

func (h *candidates) push(c candidate) {
	*h = append(*h, c)
	s := *h
	i := len(s) - 1
	for i > 0 && c.before(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = c
}

// settle replaces the candidate at i by c and moves it down to its place.
func (h candidates) settle(i int, c candidate) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(c) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = c
}

// pop removes the first candidate.
func (h *candidates) pop() {
	s := *h
	last := s[len(s)-1]
	*h = s[:len(s)-1]
	if len(*h) > 0 {
		h.settle(0, last)
	}
}

// init turns candidates in any order into a heap.
func (h candidates) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.settle(i, h[i])
	}
}
