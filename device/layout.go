package device

// A Layout is an attention pattern as data: for every head, blocks of queries and the keys each of them looks at. Causality
// and documents come on top: a token never sees a later one, nor one before Mask.Start.
//
// A query's result is the softmax over all keys that its blocks list. Where several blocks hold the same query, as the branches of
// LongNet do, it is the softmax over all of their keys together, a key that two of them list counting twice: each
// branch's result times its share of the softmax denominators.
type Layout struct {
	Len    int     // the longest row it is for; a shorter row uses the part of it that exists
	Graphs []Graph // what is different between heads
	Head   []int   // query head h goes by Graphs[Head[h]]; nil if all go by Graphs[0]
}

// A Graph is what one head looks at.
type Graph struct {
	Blocks []QueryBlock
	// Overlap says that some query is in more than one block.
	Overlap bool
}

// QueryBlock is up to 64 queries and the ranges of keys that they look at. Every query up to Len is in a block.
type QueryBlock struct {
	Queries Strip
	Keys    []KeyRange
}

// Strip is positions First, First+Step, …, Count of them. Step is at least 1.
type Strip struct{ First, Step, Count int }

// KeyRange is any number of keys, of which key j is seen by query i of the block if Near ≤ i−j < Far. Near is at least 0. Keys behind
// the end of a row, or behind the block's last query, may be listed; nobody sees them.
//
// A device takes the keys of a block in the order of its ranges, 64 at a time or so, and ranges of few keys go together; what is
// wholly hidden costs nothing. It is fast where keys are neighbours, and where blocks that follow each other have the same ranges, or
// differ in the last one only by keys that Near, Far or causality hide.
type KeyRange struct {
	Strip
	Near, Far int
}

// Of returns the graph of query head h.
func (l *Layout) Of(h int) *Graph {
	if l.Head == nil {
		return &l.Graphs[0]
	}
	return &l.Graphs[l.Head[h]]
}
