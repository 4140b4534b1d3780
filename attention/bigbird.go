package attention

import (
	"slices"

	"anneal/device"
	"anneal/tensor"
)

// BigBird combines a window, global tokens and random keys, all in blocks (Zaheer et al. 2020, arXiv 2007.14062). The
// visible keys of a query depend only on its block of B tokens: the first G blocks, which see all blocks before them;
// the W blocks up to its own; and R random blocks between those, drawn without repetition for each block, head and
// layer.
//
//	block b sees blocks 0 … G−1, b−W+1 … b, and min(R, b−W+1−G) of G … b−W
//
// Text: bigbird:WINDOW:RANDOM:GLOBAL:BLOCK:SEED, all optional: 2, 3, 1, 64 and the run's seed (modulo 2³⁰). The
// published window of three blocks is 2 here, because the third lies in the future. Time: T·B·(W+R+G) pairs. Random
// blocks connect any two tokens within few layers, so no information is out of reach. The seed is part of the model:
// a run's config stores it, so that continuing or evaluating the run uses the same graph. Not for rows of fewer than
// about 16 blocks, where it is dense.
type BigBird struct {
	Window, Random, Global, Block int
	Seed                          int // −1 until resolved
}

func readBigBird(text string, options []string) (Pattern, error) {
	b := BigBird{2, 3, 1, 64, -1}
	err := read(text, options, option{"window", &b.Window, 1}, option{"random", &b.Random, 0},
		option{"global", &b.Global, 0}, option{"block", &b.Block, 1}, option{"seed", &b.Seed, 0})
	return b, err
}

// String implements Pattern.
func (b BigBird) String() string {
	s := "bigbird:" + with("window", b.Window) + ":" + with("random", b.Random) + ":" + with("global", b.Global) + ":" +
		with("block", b.Block)
	if b.Seed >= 0 {
		s += ":" + with("seed", b.Seed)
	}
	return s
}

// Resolve implements Pattern.
func (b BigBird) Resolve(_ int, seed uint64) Pattern {
	if b.Seed < 0 {
		b.Seed = int(seed % (largest + 1))
	}
	return b
}

// Check implements Pattern.
func (b BigBird) Check(int, int) error { return nil }

func (b BigBird) entries(length, heads int) float64 {
	rows := float64(length/b.Block + 1)
	return float64(heads) * (tiles(length) + rows*(1+min(rows, float64(b.Window)+float64(b.Random)+float64(b.Global))))
}

func (b BigBird) layout(length, heads, layer int) *device.Layout {
	if length <= b.Block*(b.Window+b.Global) {
		return nil
	}
	graphs := make([]device.Graph, heads)
	var scratch []device.KeyRange
	for h := range graphs {
		for row := 0; row*b.Block < length; row++ {
			scratch = b.ranges(scratch[:0], b.sees(row, h, layer))
			keys := slices.Clone(scratch)
			for from := row * b.Block; from < min((row+1)*b.Block, length); from += tile {
				q := device.Strip{First: from, Step: 1, Count: min(tile, (row+1)*b.Block-from, length-from)}
				graphs[h].Blocks = append(graphs[h].Blocks, device.QueryBlock{Queries: q, Keys: keys})
			}
		}
	}
	return cycled(graphs, length, heads)
}

// sees returns the blocks that a block of a head sees, in ascending order.
func (b BigBird) sees(row, head, layer int) []int {
	var list []int
	near := max(row-b.Window+1, 0)
	for k := range min(b.Global, near) {
		list = append(list, k)
	}
	list = append(list, b.draw(min(b.Global, near), near, row, head, layer)...)
	for k := near; k <= row; k++ {
		list = append(list, k)
	}
	return list
}

// draw returns up to Random different numbers from … to−1, in ascending order, uniformly distributed (Floyd 1987).
func (b BigBird) draw(from, to, row, head, layer int) []int {
	rng := tensor.NewRNG(uint64(b.Seed), tensor.PurposeGraph, uint32(layer))
	var drawn []int
	for i := range min(b.Random, to-from) {
		last := to - min(b.Random, to-from) + i
		number := rng.Block(uint64(head)<<48 | uint64(row)<<24 | uint64(i))[0]
		k := from + int(uint64(number)*uint64(last-from+1)>>32)
		at, taken := slices.BinarySearch(drawn, k)
		if taken {
			at, k = len(drawn), last // larger than all drawn numbers
		}
		drawn = slices.Insert(drawn, at, k)
	}
	return drawn
}

// ranges appends the keys of blocks to a list and merges neighbours.
func (b BigBird) ranges(list []device.KeyRange, blocks []int) []device.KeyRange {
	for i := 0; i < len(blocks); {
		n := 1
		for i+n < len(blocks) && blocks[i+n] == blocks[i]+n {
			n++
		}
		list = append(list, span(blocks[i]*b.Block, (blocks[i]+n)*b.Block))
		i += n
	}
	return list
}
