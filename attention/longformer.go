package attention

import (
	"anneal/device"
)

// Longformer is a sliding window, and global tokens (Beltagy et al. 2020, arXiv 2004.05150): the first G of the row, which every
// query sees, and which see all before them. The original gives global tokens projections of their own; here they share those
// of the others.
//
//	query i sees keys i−W+1 … i and 0 … G−1
//
// Text: longformer:WINDOW:GLOBAL, both optional: 512 and 64. Time: T·(W+G) pairs. Global tokens hold what begins a text, and are
// where a head can look if nothing in the window concerns it (attention sinks, Xiao et al. 2023, arXiv 2309.17453). Not for rows of
// many documents, of which only the first has them; window is the same for the others, and faster.
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
