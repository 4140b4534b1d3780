package attention

import (
	"fmt"

	"anneal/device"
)

// Fixed is the fixed form of the Sparse Transformer (Child et al. 2019, arXiv 1904.10509). In each block of L tokens,
// a column of C tokens summarises the block: all later blocks see these. Heads alternate between the L/C choices of
// the column, starting with the last C tokens of a block.
//
//	query i sees keys j ≤ i with ⌊j/L⌋ = ⌊i/L⌋, or with L−C·(s+1) ≤ j mod L < L−C·s, s = head mod ⌊L/C⌋
//
// Text: fixed:BLOCK:COLUMNS, both optional: √T rounded to a multiple of 64, and 8. Time: about T·(L + C·T/L)/2 pairs,
// T^1.5 for L near √T. The published form can also split own block and columns between heads; here each head has
// both, as the paper prefers for text. Not for short rows: below about 1,000 tokens it saves little.
type Fixed struct{ Block, Columns int }

func readFixed(text string, options []string) (Pattern, error) {
	f := Fixed{0, 8}
	err := read(text, options, option{"block", &f.Block, 1}, option{"columns", &f.Columns, 1})
	if err == nil && f.Block > 0 && f.Columns > f.Block {
		err = &Error{fmt.Sprintf("%s: %d columns exceed the block of %d tokens", text, f.Columns, f.Block),
			fmt.Sprintf("fixed:%d:%d", f.Block, max(f.Block/8, 1))}
	}
	return f, err
}

// String implements Pattern.
func (f Fixed) String() string {
	if f.Block == 0 {
		return "fixed:" + with("columns", f.Columns)
	}
	return "fixed:" + with("block", f.Block) + ":" + with("columns", f.Columns)
}

// Resolve implements Pattern.
func (f Fixed) Resolve(length int, _ uint64) Pattern {
	if f.Block == 0 {
		f.Block = max(root(length), f.Columns)
	}
	return f
}

// Check implements Pattern.
func (f Fixed) Check(int, int) error { return nil }

func (f Fixed) entries(length, heads int) float64 {
	rows := float64(length/f.Block + 1)
	return float64(min(heads, f.Block/f.Columns)) * (tiles(length) + rows*(2+min(rows, float64(f.Columns))))
}

func (f Fixed) layout(length, heads, _ int) *device.Layout {
	if f.Block >= length || f.Columns == f.Block {
		return nil
	}
	graphs := make([]device.Graph, min(heads, f.Block/f.Columns))
	for s := range graphs {
		for from := 0; from < length; from += f.Block {
			own := span(from, min(from+f.Block, length))
			keys := append(f.columns(from/f.Block, f.Block-f.Columns*(s+1)), own)
			blocks := queries(from, 1, after(own.Strip), func(device.Strip) []device.KeyRange { return keys })
			graphs[s].Blocks = append(graphs[s].Blocks, blocks...)
		}
	}
	return cycled(graphs, length, heads)
}

// columns returns the columns at an offset in each of the first blocks, merged into as few ranges as possible.
func (f Fixed) columns(blocks, offset int) []device.KeyRange {
	list := make([]device.KeyRange, 0, min(blocks, f.Columns)+1) // room for the own block
	if blocks <= f.Columns {
		for b := range blocks {
			list = append(list, span(b*f.Block+offset, b*f.Block+offset+f.Columns))
		}
		return list
	}
	for c := range f.Columns {
		list = append(list, until(offset+c, f.Block, blocks*f.Block))
	}
	return list
}
