package attention

import (
	"anneal/device"
)

// Longformer is a sliding window plus global tokens (Beltagy et al. 2020, arXiv 2004.05150): the first G tokens of
// the row, which every query sees, and which see all tokens before them. The original gives global tokens separate
// projections; here all tokens share one.
//
//	query i sees keys i−W+1 … i and 0 … G−1
//
// Text: longformer:WINDOW:GLOBAL, both optional: 512 and 64. Time: T·(W+G) pairs. Global tokens hold the beginning of
// a text, and give a head a place to attend to if nothing in the window is relevant (attention sinks, Xiao et al.
// 2023, arXiv 2309.17453). Not for rows of several documents: only the first one has global tokens. For the others
// window is equivalent, and faster.
type Longformer struct{ Window, Global int }

func readLongformer(text string, options []string) (Pattern, error) {
	l := Longformer{512, 64}
	err := read(text, options, option{"window", &l.Window, 1}, option{"global", &l.Global, 1})
	return l, err
}

// String implements Pattern.
func (l Longformer) String() string {
	return "longformer:" + with("window", l.Window) + ":" + with("global", l.Global)
}

// Resolve implements Pattern.
func (l Longformer) Resolve(int, uint64) Pattern { return l }

// Check implements Pattern.
func (l Longformer) Check(int, int) error { return nil }

func (l Longformer) entries(length, _ int) float64 { return 3 * tiles(length) }

func (l Longformer) layout(length, _, _ int) *device.Layout {
	if l.Window+l.Global >= length {
		return nil
	}
	return same(local(l.Window, l.Global, length), length)
}
