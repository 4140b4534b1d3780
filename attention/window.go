package attention

import (
	"fmt"

	"anneal/device"
)

// Window is sliding-window attention (Child et al. 2019; Beltagy et al. 2020; Mistral, Jiang et al. 2023, arXiv
// 2310.06825): a query sees itself and the W−1 tokens before it.
//
//	query i sees keys i−W+1 … i
//
// Text: window:W. Time: T·W pairs. Through L layers information reaches L·(W−1) tokens. W has no default; 256 to 4096
// is usual, depending on the text. Combined with full layers, such as in three of four layers, short windows lose
// little quality. Not in all layers if an answer may lie further back than the layers reach together.
type Window struct{ Keys int }

func readWindow(text string, options []string) (Pattern, error) {
	if len(options) == 0 {
		return nil, &Error{text + " does not say how many keys a query sees", "window:256"}
	}
	var w Window
	if err := read(text, options, option{"keys", &w.Keys, 0}); err != nil {
		return nil, err
	}
	if w.Keys == 0 {
		return nil, &Error{text + " leaves query 0 without a key: a window includes the query itself", "window:256"}
	}
	return w, nil
}

// String implements Pattern.
func (w Window) String() string { return fmt.Sprintf("window:%d", w.Keys) }

// Resolve implements Pattern.
func (w Window) Resolve(int, uint64) Pattern { return w }

// Check implements Pattern.
func (w Window) Check(int, int) error { return nil }

func (w Window) entries(length, _ int) float64 { return 3 * tiles(length) }

func (w Window) layout(length, _, _ int) *device.Layout {
	if w.Keys >= length {
		return nil
	}
	return same(local(w.Keys, 0, length), length)
}

// local returns the blocks of a window, plus the first global keys, which every query sees.
func local(window, global, length int) []device.QueryBlock {
	return queries(0, 1, length, func(q device.Strip) []device.KeyRange {
		end := after(q)
		if end <= window+global {
			return []device.KeyRange{span(0, end)}
		}
		from := max((q.First-window+1)&^7, global) // kernels load keys from multiples of 8 on
		near := device.KeyRange{Strip: device.Strip{First: from, Step: 1, Count: end - from}, Far: window}
		if global == 0 {
			return []device.KeyRange{near}
		}
		return []device.KeyRange{span(0, global), near}
	})
}
