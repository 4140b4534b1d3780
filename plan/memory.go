package plan

import "fmt"

// Item is one named part of a run's memory.
type Item struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	Formula string `json:"formula"`
}

// Estimate is the memory of a run, part by part.
type Estimate []Item

// Total sums the parts, in bytes.
func (e Estimate) Total() int64 {
	var n int64
	for _, i := range e {
		n += i.Bytes
	}
	return n
}

// Fits reports whether the whole fits in so many bytes.
func (e Estimate) Fits(available int64) bool { return e.Total() <= available }

// processBytes is what the binary, the Go heap, the loader and the worker stacks take beside the arenas.
const processBytes = 64 << 20

// logitRows is how many tokens' logits exist at once; the loss never holds [tokens, vocab].
const logitRows = 256

// Memory predicts what a training run holds at its peak. precision is bf16, fp32 or fp64; sequences is the micro-batch.
// In the formulas, P is parameters, n tokens in a micro-batch, e the bytes of an activation (2, 4 or 8) and f those of
// the residual stream, the masters and the sums (4 or 8).
//
// What a block keeps for its backward pass, for each token: both normalised inputs, the joint queries, keys and values,
// attention's output and its log-sum-exp, gate and up, and the two root mean squares. The residual stream is updated in
// place and exists once.
func Memory(s Shape, precision string, sequences int) (Estimate, error) {
	var e, f int64
	switch precision {
	case "bf16":
		e, f = 2, 4
	case "fp32":
		e, f = 4, 4
	case "fp64":
		e, f = 8, 8
	default:
		return nil, fmt.Errorf("precision %q is not bf16, fp32 or fp64", precision)
	}
	p := s.Parameters()
	n := int64(sequences) * int64(s.Context)
	heads, ffn, width := int64(s.Heads), int64(s.FFN), int64(s.Heads)*int64(s.HeadDim)

	perToken := e*(2*s.dim()+s.qkv()+width+2*ffn) + f*heads + f*2
	if s.QKNorm {
		perToken += f * (heads + int64(s.KVHeads))
	}
	est := Estimate{
		{"parameters", f * p, "f·P"},
		{"gradients", f * p, "f·P"},
		{"optimizer", 2 * f * p, "2f·P (AdamW's two moments)"},
		{"activations", n * (int64(s.Layers)*perToken + f*s.dim()), "n·(L·(e·(2D + (H+2K)E + HE + 2F) + f·(H + 2)) + f·D)"},
		{"scratch", n * (f*s.dim() + e*(s.qkv()+3*ffn)), "n·(f·D + e·((H+2K)E + 3F)): gradients of one block"},
		{"logits", f * logitRows * int64(s.Vocab), fmt.Sprintf("f·%d·V (one chunk)", logitRows)},
		{"process", processBytes, "binary, loader, stacks"},
	}
	if precision == "bf16" {
		est = append(est, Item{"bf16 weights", 2 * s.MatrixParameters(), "2·(parameters in matrix products)"})
	}
	return est, nil
}
