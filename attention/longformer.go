package attention

import (
	"fmt"
	"strconv"
	"strings"

	"anneal/device"
)

// Longformer is a sliding window plus global tokens (Beltagy et al. 2020, arXiv 2004.05150): the first G tokens of
// the row, which every query sees, and which see all tokens before them. All tokens share one projection, unless
// model.longformer_global_projections gives the global ones their own.
//
//	query i sees keys i−W+1 … i and 0 … G−1
//
// With a dilation D, the windows of the last heads have gaps; they reach D times as far at the same cost:
//
//	query i sees keys i, i−D, …, i−(W−1)·D and 0 … G−1
//
// Text: longformer:WINDOW:GLOBAL, both optional: 512 and 64; then dilation=D or dilation=D/D/… and heads=H, the number
// of heads with gaps, 2 by default. Layers from the first to the last divide a list of dilations among them. The paper
// (§4.1) leaves the lower layers without gaps and widens them slowly in 2 heads of the upper ones: in 12 layers,
// dilation=1/1/1/2/3/4. Here 1 means no gaps, as in the paper's code. Time: T·(W+G) pairs. Global tokens hold the
// beginning of a text, and give a head a place to attend to if nothing in the window is relevant (attention sinks, Xiao
// et al. 2023, arXiv 2309.17453). Not for rows of several documents: only the first one has global tokens. For the
// others window is equivalent, and faster.
type Longformer struct {
	Window, Global int
	Dilations      []int // of the last heads, over the depth of a model; empty is 1
	Heads          int   // number of heads with dilation; 0 is 2, or all if there are fewer
}

func readLongformer(text string, options []string) (Pattern, error) {
	l := Longformer{Window: 512, Global: 64}
	err := read(text, options, option{"window", &l.Window, 1},
		option{"global", &l.Global, 1}, option{"dilation", &l.Dilations, 1},
		option{"heads", &l.Heads, 1})
	if err == nil && l.Heads > 0 && len(l.Dilations) == 0 {
		err = &Error{fmt.Sprintf("%s: heads=%d is the number of heads with dilation, but there is no dilation",
			text, l.Heads), fmt.Sprintf("longformer:%d:%d:dilation=2:heads=%d", l.Window, l.Global, l.Heads)}
	}
	return l, err
}

// String implements Pattern.
func (l Longformer) String() string {
	s := "longformer:" + with("window", l.Window) + ":" + with("global", l.Global)
	if len(l.Dilations) > 0 {
		list := make([]string, len(l.Dilations))
		for i, d := range l.Dilations {
			list[i] = strconv.Itoa(d)
		}
		s += ":dilation=" + strings.Join(list, "/")
	}
	if l.Heads > 0 {
		s += ":" + with("heads", l.Heads)
	}
	return s
}

// Resolve implements Pattern.
func (l Longformer) Resolve(int, uint64) Pattern { return l }

// Check implements Pattern.
func (l Longformer) Check(_, heads int) error {
	if l.Heads > heads {
		return &Error{fmt.Sprintf("%s widens the windows of %d heads, but there are only %d", l, l.Heads, heads),
			fmt.Sprintf("heads=%d or fewer", heads)}
	}
	return nil
}

func (l Longformer) stages() []Pattern {
	if len(l.Dilations) <= 1 {
		return []Pattern{l}
	}
	list := make([]Pattern, len(l.Dilations))
	for i, d := range l.Dilations {
		list[i] = Longformer{l.Window, l.Global, []int{d}, l.Heads}
		if d == 1 {
			list[i] = Longformer{Window: l.Window, Global: l.Global}
		}
	}
	return list
}

// dilation returns the dilation of the last heads in a pattern of one layer.
func (l Longformer) dilation() int {
	if len(l.Dilations) == 0 {
		return 1
	}
	return l.Dilations[0]
}

func (l Longformer) entries(length, _ int) float64 {
	n := 3 * tiles(length)
	if d := l.dilation(); d > 1 {
		n += 3 * (tiles(length) + float64(min(d, length)))
	}
	return n
}

func (l Longformer) layout(length, heads, _ int) *device.Layout {
	d, few := l.dilation(), l.Heads
	if few == 0 {
		few = min(2, heads)
	}
	switch {
	case d == 1 && l.Window+l.Global >= length:
		return nil
	case d == 1:
		return same(local(l.Window, l.Global, length), length)
	}
	layout := cycled([]device.Graph{{Blocks: local(l.Window, l.Global, length)}, {Blocks: l.dilated(d, length)}},
		length, heads)
	for h := range layout.Head {
		layout.Head[h] = 0
		if h >= heads-few {
			layout.Head[h] = 1
		}
	}
	return layout
}

// dilated returns the blocks of a window in which only every d-th key is visible, plus the global keys. A block holds
// queries with the same remainder modulo d, because these share keys.
func (l Longformer) dilated(d, length int) (blocks []device.QueryBlock) {
	for rest := range min(d, length) {
		beyond := rest + (max(l.Global-rest, 0)+d-1)/d*d // the first key after the global ones
		blocks = append(blocks, queries(rest, d, length, func(q device.Strip) []device.KeyRange {
			end := after(q)
			keys := []device.KeyRange{span(0, min(l.Global, end))}
			if from := max(q.First-(l.Window-1)*d, beyond); from < end {
				near := until(from, d, end)
				near.Far = l.Window * d
				keys = append(keys, near)
			}
			return keys
		})...)
	}
	return blocks
}
