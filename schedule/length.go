package schedule

import "sort"

// LengthRamp trains on short sequences first (Li et al. 2021, arXiv 2108.06084), which makes early training steadier.
// The tokens of a step do not change: each sample of the full context is cut into equal pieces, so a run reads the
// same samples in the same order, and every target once. The length of the pieces grows linearly from the first to
// the full length, rounded down to a multiple of 8 that divides the context. Memory does not change. Off by default.
//
// It also saves attention to distant tokens, at most T/(12·dim) of the work. This is much only if the context is far
// longer than the model is wide.
type LengthRamp struct {
	From, Full int // tokens; both multiples of 8
	Steps      int // steps until the full length
}

// lengthUnit divides all lengths.
const lengthUnit = 8

// Length returns the tokens per sequence of step n (from 1).
func (r LengthRamp) Length(n int) int {
	if n > r.Steps || r.From >= r.Full {
		return r.Full
	}
	length := r.From + int(float64(n-1)/float64(r.Steps)*float64(r.Full-r.From))
	for length = length / lengthUnit * lengthUnit; r.Full%length != 0; {
		length -= lengthUnit
	}
	return length
}

// SameFor returns a number of steps from step n on, at least one, whose sequences are sure to have the same length.
func (r LengthRamp) SameFor(n int) int {
	if n > r.Steps || r.From >= r.Full {
		return 1 << 62
	}
	length := r.Length(n)
	return 1 + sort.Search(r.Steps-n, func(i int) bool { return r.Length(n+1+i) != length })
}
