package device

import (
	"math"

	"anneal/tensor"
)

// A Cache holds the keys and values of one layer for the tokens of a sequence so far (see AttentionCached).
type Cache struct {
	// [R, 2K·E], in the storage of activations: K key heads and K value heads of position p in row p mod R
	KV    tensor.Tensor
	Reach int // queries only see keys less than Reach positions before them

	// For linear attention. KV then has LinearChunk rows, for the tokens since the last multiple of LinearChunk;
	// State is the state before them, and Gates are the logits of their gates, or the zero tensor without gates.
	State tensor.Tensor // [K·(E+1), E] in F32 (F64 in the reference mode)
	Gates tensor.Tensor // [LinearChunk, K], same dtype
	// With a delta rule State also has the keys and the corrected values of these tokens, [K·(E+2·LinearChunk), E], KV
	// is the zero tensor, and Gates has a column for each gate. With VectorGateRule State holds the states before
	// every VectorGateChunk of these tokens, [4·K·E, E].
}

// LinearChunk is the number of tokens that linear attention adds to its state at a time.
const LinearChunk = 64

// CacheRows returns the number of rows R that a cache needs for sequences of up to length tokens: length, or, if
// queries only see keys within reach, enough for reach and one block of new tokens, which are stored before
// attention.
func CacheRows(length, reach int) int {
	if reach > length {
		return length
	}
	return min(length, reach-1+cachedBlock)
}

// cachedBlock is the smallest number of tokens added at a time.
const cachedBlock = 64

// Holds reports whether a cache of R rows, to which written tokens have been added, still holds all keys that the
// query at position p sees.
func (c *Cache) Holds(written, p int) bool {
	if !c.State.IsZero() {
		return p >= written/LinearChunk*LinearChunk
	}
	return written-c.KV.Rows() <= max(0, p-c.Reach+1)
}

// Reach returns the smallest distance greater than that of every query to the keys it sees: 1 if queries see only
// themselves. Without a layout the distance is unlimited.
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
