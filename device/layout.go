package device

// A Layout is an attention pattern as data: for every head, blocks of queries with the keys that they see. Causality
// and documents apply as well: a token never sees a later token, nor one before Mask.Start.
//
// The result of a query is the softmax over all keys that its blocks list. If several blocks hold the same query, as
// with the branches of LongNet, it is the softmax over all of their keys together, where a key in two blocks counts
// twice: the sum of each branch's result times its share of the softmax denominators.
type Layout struct {
	Len    int     // the longest row it is for; a shorter row uses the part that it needs
	Graphs []Graph // the distinct graphs of the heads
	Head   []int   // query head h uses Graphs[Head[h]]; nil if all use Graphs[0]
}

// A Graph defines the keys that one head sees.
type Graph struct {
	Blocks []QueryBlock
	// Overlap reports that some query is in more than one block.
	Overlap bool
}

// QueryBlock is up to 64 queries and the ranges of keys that they see. Every query up to Len is in a block.
type QueryBlock struct {
	Queries Strip
	Keys    []KeyRange
}

// Strip is the Count positions First, First+Step, …. Step is at least 1.
type Strip struct{ First, Step, Count int }

// KeyRange is a range of keys. Query i of the block sees key j if Near ≤ i−j < Far. Near is at least 0. Keys after the
// end of a row, or after the block's last query, may be listed, but no query sees them.
//
// A device processes the keys of a block in the order of its ranges, about 64 at a time, and joins short ranges;
// hidden tiles cost nothing. It is fast if keys are neighbours and consecutive blocks have the same ranges. The last
// ranges may differ in keys that Near, Far or causality hide.
type KeyRange struct {
	Strip
	Near, Far int
}

// Cut returns the layout of query heads [from, to).
func (l *Layout) Cut(from, to int) *Layout {
	if l == nil || l.Head == nil {
		return l
	}
	cut := *l
	cut.Head = l.Head[from:to]
	return &cut
}

// Of returns the graph of query head h.
func (l *Layout) Of(h int) *Graph {
	if l.Head == nil {
		return &l.Graphs[0]
	}
	return &l.Graphs[l.Head[h]]
}
