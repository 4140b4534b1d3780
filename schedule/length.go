package schedule

// LengthRamp trains on short sequences first (Li et al. 2021, arXiv 2108.06084: steadier early training). The tokens of a
// step stay the same: each sample of the full context is cut into equal pieces, so the same samples are read in the
// same order, every target once. Pieces are as long as a line from the first length to the full one says, rounded down
// to a multiple of 8 that divides the context. Memory does not change. Off by default.
//
// It also saves the attention to far tokens, T/(12·dim) of the work at most: much only where the context is far longer
// than the model is wide.
type LengthRamp struct {
	From, Full int // tokens; both multiples of 8
	Steps      int // until the full length
}

// lengthUnit is what lengths are multiples of.
const lengthUnit = 8

// Length returns the tokens in a sequence of step n (from 1).
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
