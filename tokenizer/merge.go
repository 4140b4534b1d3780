package tokenizer

import (
	"math/bits"
	"slices"
)

// shortPiece is the longest pretoken, in bytes, for which scanning all pairs each time is faster than a queue.
const shortPiece = 64

// merger runs the merges on one pretoken: of all adjacent pairs it merges the one with the lowest rank, the leftmost
// of equals, until no pair has a rank.
type merger struct {
	t *Tokenizer
	queue
}

// append appends the tokens of piece to dst.
func (m *merger) append(dst []uint32, piece []byte) []uint32 {
	if len(piece) == 1 {
		return append(dst, m.t.byteID[piece[0]])
	}
	if m.t.ignoreMerges {
		if i := m.t.vocab.find(piece); i >= 0 {
			return append(dst, m.t.ids[i])
		}
	}
	if len(piece) <= shortPiece {
		return m.appendShort(dst, piece)
	}
	return m.appendLong(dst, piece)
}

// appendShort takes quadratic time, on arrays in the first-level cache.
func (m *merger) appendShort(dst []uint32, piece []byte) []uint32 {
	var ids, ranks [shortPiece]uint32 // ranks[i] is that of the pair i, i+1
	n := len(piece)
	for i, b := range piece {
		ids[i] = m.t.byteID[b]
	}
	for i := range n - 1 {
		ranks[i] = m.t.ranks.bytes[int(piece[i])<<8|int(piece[i+1])]
	}
	ranks[n-1] = noRank
	for {
		at, low := 0, uint32(noRank)
		for i, r := range ranks[:n-1] {
			if r < low {
				at, low = i, r
			}
		}
		if low == noRank {
			return append(dst, ids[:n]...)
		}
		ids[at] = m.t.merges[low].id
		copy(ids[at+1:n-1], ids[at+2:n])
		copy(ranks[at+1:n-1], ranks[at+2:n])
		n--
		ranks[n-1] = noRank
		if at > 0 {
			ranks[at-1] = m.t.ranks.find(ids[at-1], ids[at])
		}
		if at < n-1 {
			ranks[at] = m.t.ranks.find(ids[at], ids[at+1])
		}
	}
}

// queue is the state of appendLong: the pairs to merge, by rank. Its memory, about 20 bytes per byte of the longest
// pretoken seen, is reused up to keepQueue.
type queue struct {
	starts []uint64 // bit i: a token starts at byte i
	ids    []uint32 // of the token that starts here
	ranks  []uint32 // of that token with the next
	nodes  []node   // lists of positions, one per rank
	lists  []list   // by rank
	free   uint32   // first node that is in no list, plus one
	heap   []uint32 // ranks with a list, lowest first
	at     []uint32 // positions of the current ranks, a stack
}

// node is a position in a list; next is the number of the node before it, plus one, or 0.
type node struct{ pos, next uint32 }

// list is the list of nodes of a rank: the numbers of the newest and the oldest, plus one.
type list struct{ newest, oldest, size uint32 }

const (
	keepQueue = 1 << 16 // bytes of pretoken
	// maxPiece is the length at which pretokens are cut, because positions and nodes are 32-bit numbers. It would
	// take 20 GiB.
	maxPiece = 1 << 30
)

// appendLong takes linear time in the length of piece, apart from sorting positions and ranks.
func (m *merger) appendLong(dst []uint32, piece []byte) []uint32 {
	for len(piece) > maxPiece {
		dst = m.appendLong(dst, piece[:maxPiece])
		piece = piece[maxPiece:]
	}
	m.fill(piece)
	m.drain(noRank, len(piece))
	for i := 0; i < len(piece); i = m.after(i, len(piece)) {
		dst = append(dst, m.ids[i])
	}
	if len(piece) > keepQueue {
		m.queue = queue{}
	}
	return dst
}

// drain runs all merges with ranks below limit. Each round merges the lowest rank, from the left. In a trained
// vocabulary, a merge only creates pairs of higher rank; where a file violates that, the lower ranks go before the
// rest of the round. (They cannot create more pairs for this round: every token they create contains the new one, so
// it is longer than the two tokens of this round.)
func (m *merger) drain(limit uint32, end int) {
	for len(m.heap) > 0 && m.heap[0] < limit {
		rank := m.pop()
		kept := len(m.at)
		for _, pos := range m.take(rank) {
			if m.ranks[pos] != rank {
				continue // one of the two tokens was merged otherwise
			}
			if m.join(int(pos), end) < rank {
				m.drain(rank, end)
			}
		}
		m.at = m.at[:kept]
	}
}

// fill starts with one token per byte.
func (m *merger) fill(piece []byte) {
	n := len(piece)
	m.starts = slices.Grow(m.starts[:0], n/64+1)[:n/64+1]
	m.ids = slices.Grow(m.ids[:0], n)[:n]
	m.ranks = slices.Grow(m.ranks[:0], n)[:n]
	m.nodes, m.free = slices.Grow(m.nodes[:0], n), 0
	if m.lists == nil {
		m.lists = make([]list, len(m.t.merges))
	}
	for i := range m.starts {
		m.starts[i] = 1<<64 - 1
	}
	for i, b := range piece {
		m.ids[i] = m.t.byteID[b]
		m.ranks[i] = noRank
		if i+1 < n {
			m.ranks[i] = m.t.ranks.bytes[int(b)<<8|int(piece[i+1])]
			m.push(m.ranks[i], i)
		}
	}
}

// join merges the token at pos with the next one. It returns the lower rank of the two new pairs.
func (m *merger) join(pos, end int) uint32 {
	gone := m.after(pos, end)
	m.starts[gone>>6] &^= 1 << (gone & 63)
	m.ranks[gone] = noRank
	m.ids[pos] = m.t.merges[m.ranks[pos]].id
	m.ranks[pos] = noRank
	if next := m.after(pos, end); next < end {
		m.ranks[pos] = m.t.ranks.find(m.ids[pos], m.ids[next])
		m.push(m.ranks[pos], pos)
	}
	low := m.ranks[pos]
	if pos > 0 {
		prev := m.before(pos)
		m.ranks[prev] = m.t.ranks.find(m.ids[prev], m.ids[pos])
		m.push(m.ranks[prev], prev)
		low = min(low, m.ranks[prev])
	}
	return low
}

// after returns the start of the token after the one at pos, or end.
func (q *queue) after(pos, end int) int {
	pos++
	w := pos >> 6
	if w >= len(q.starts) {
		return end
	}
	word := q.starts[w] >> (pos & 63) << (pos & 63)
	for word == 0 {
		if w++; w == len(q.starts) {
			return end
		}
		word = q.starts[w]
	}
	return min(w<<6+bits.TrailingZeros64(word), end)
}

// before returns the start of the token before the one at pos > 0.
func (q *queue) before(pos int) int {
	pos--
	w := pos >> 6
	word := q.starts[w] << (63 - pos&63) >> (63 - pos&63)
	for word == 0 {
		w--
		word = q.starts[w]
	}
	return w<<6 + 63 - bits.LeadingZeros64(word)
}

// push adds the pair at pos to the list of its rank.
func (q *queue) push(rank uint32, pos int) {
	if rank == noRank {
		return
	}
	l := &q.lists[rank]
	if l.size == 0 {
		q.heap = append(q.heap, rank)
		for i := len(q.heap) - 1; i > 0 && q.heap[i] < q.heap[(i-1)/2]; i = (i - 1) / 2 {
			q.heap[i], q.heap[(i-1)/2] = q.heap[(i-1)/2], q.heap[i]
		}
	}
	n := q.free
	if n == 0 {
		q.nodes = append(q.nodes, node{})
		n = uint32(len(q.nodes))
	}
	q.free = q.nodes[n-1].next
	q.nodes[n-1] = node{uint32(pos), l.newest}
	l.newest = n
	if l.size == 0 {
		l.oldest = n
	}
	l.size++
}

// pop removes the lowest rank from the heap.
func (q *queue) pop() uint32 {
	h := q.heap
	low, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	q.heap = h
	return low
}

// take empties the list of rank and returns it from left to right, on top of at.
func (q *queue) take(rank uint32) []uint32 {
	l := q.lists[rank]
	q.lists[rank] = list{}
	top, size := len(q.at), int(l.size)
	q.at = slices.Grow(q.at, size)[:top+size]
	at, n := q.at[top:], l.newest
	for i := size - 1; i >= 0; i-- {
		at[i] = q.nodes[n-1].pos
		n = q.nodes[n-1].next
	}
	q.nodes[l.oldest-1].next, q.free = q.free, l.newest
	if !slices.IsSorted(at) {
		slices.Sort(at)
	}
	return at
}
