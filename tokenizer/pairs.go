package tokenizer

import "cmp"

// pairTable numbers pairs of tokens and keeps, for each, its count and the words it occurs in.
type pairTable struct {
	slots []uint32 // number of the pair, plus one; 0: free
	shift uint
	pairs []pair
}

// pair is two adjacent tokens.
type pair struct {
	key   uint64
	count int64
	words []uint32 // where it occurs; may hold words it no longer occurs in
}

func newPairTable() *pairTable { return &pairTable{slots: make([]uint32, 1<<16), shift: 48} }

// get returns the number of a pair, which is new with count 0 if it was not there.
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

// candidate is a pair in the heap, with the count it had when it was put there.
type candidate struct {
	count  int64
	key    uint64
	number uint32
}

// before is the order of merges: larger count, then smaller ids.
func (a candidate) before(b candidate) bool {
	if c := cmp.Compare(a.count, b.count); c != 0 {
		return c > 0
	}
	return a.key < b.key
}

// candidates is a heap, the next merge first.
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

// settle puts c in place of the first candidate and moves it to where it belongs.
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

// init makes a heap of candidates in any order.
func (h candidates) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.settle(i, h[i])
	}
}
