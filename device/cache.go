package device

import (
	"math"

	"anneal/tensor"
)

// A Cache holds the keys and values that a layer has made of one sequence, for the tokens that follow (see AttentionCached).
type Cache struct {
	KV    tensor.Tensor // [R, 2K·E], as activations are stored: K key heads and K value heads of position p in row p mod R
	Reach int           // no query sees a key that lies Reach or more before it

	// Of linear attention, where KV has the LinearChunk rows since the last multiple of LinearChunk tokens: the state before them, and
	// their gates' logits, the zero tensor without gates.
	State tensor.Tensor // [K·(E+1), E] in F32 (F64 in the reference mode)
	Gates tensor.Tensor // [LinearChunk, K], likewise
}

// LinearChunk is how many tokens linear attention takes into its state at a time.
const LinearChunk = 64

// CacheRows returns how many rows R a cache needs for sequences of up to length tokens: all of them, or where queries see no further
// than reach those and one block of queries, which are added before they are attended to.
func CacheRows(length, reach int) int {
	if reach > length {
		return length
	}
	return min(length, reach-1+cachedBlock)
}

// cachedBlock is how many tokens at least are added at a time.
const cachedBlock = 64

// Holds reports whether a cache of R rows that has been given written tokens still has all that the query at position p sees.
func (c *Cache) Holds(written, p int) bool {
	if !c.State.IsZero() {
		return p >= written/LinearChunk*LinearChunk
	}
	return written-c.KV.Rows() <= max(0, p-c.Reach+1)
}

// Reach returns a distance that no query and key have that see each other: 1 if queries see only themselves. Without a layout
// there is none.
func (l *Layout) Reach() int {
	if l == nil {
		return math.MaxInt
	}
	reach := 1
	for _, g := range l.Graphs {
		for _, b := range g.Blocks {
			last := b.Queries.First + (b.Queries.Count-1)*b.Queries.Step
			for _, k := range b.Keys {
				reach = max(reach, min(k.Far, last-k.First+1))
			}
		}
	}
	return reach
}

// AttentionCached does nothing.
func (Null) AttentionCached(_, _ *tensor.Tensor, _ *Cache, _ int, _ Heads, _ Mask) {}
