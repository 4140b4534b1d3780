package attention

import "anneal/device"

// Full is causal attention: every query sees itself and all keys before it (Vaswani et al. 2017, arXiv 1706.03762).
//
//	query i sees keys 0 … i
//
// Text: full. Time: T²/2 pairs for a row of T tokens. Memory: outputs and one number per row and head. It is the
// default. Not for rows of tens of thousands of tokens, where attention takes nearly all of the time.
type Full struct{}

// String implements Pattern.
func (Full) String() string { return "full" }

// Resolve implements Pattern.
func (f Full) Resolve(int, uint64) Pattern { return f }

// Check implements Pattern.
func (Full) Check(int, int) error { return nil }

func (Full) entries(int, int) float64 { return 0 }

func (Full) layout(int, int, int) *device.Layout { return nil }
