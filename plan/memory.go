package plan

import (
	"fmt"
	"slices"
)

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

// Bytes returns the size of the part of a name.
func (e Estimate) Bytes(name string) int64 {
	i := slices.IndexFunc(e, func(i Item) bool { return i.Name == name })
	return e[i].Bytes
}

// Fits reports whether the whole fits in so many bytes.
func (e Estimate) Fits(available int64) bool { return e.Total() <= available }

// Optimizer is what an optimizer takes.
type Optimizer struct {
	Name           string
	State, Scratch int64   // bytes that it keeps between updates, and that it needs during one
	FLOPs          float64 // of an update, where they count beside those of training
}

// processBytes is what the binary, the Go heap, the loader and the worker stacks take beside the arenas.
const processBytes = 32 << 20

// logitBytes bounds the logits that exist at one time; the loss never holds [tokens, vocab].
const logitBytes = 16 << 20

// Memory predicts what a training run holds at its peak. precision is a name of package precision; sequences is the
// micro-batch; o is what the optimizer says of itself.
// In the formulas P is parameters, n tokens in a micro-batch, Q = (H+2K)·E the width of queries, keys and values
// together, e the bytes of an activation (2, 4 or 8) and f those of masters, sums and the residual stream (4, 4 or 8).
//
// A block keeps for its backward pass, for each token: both normalised inputs and their root mean squares, the queries,
// keys and values, attention's output and log-sum-exp, gate and up. The residual stream and its gradient exist once each.
// Of what Recompute names, only what recompute.go says is kept.
// What is cheap to compute again lives in scratch, with the gradients of one block or the logits of one chunk.
func Memory(s Shape, precision string, sequences int, o Optimizer) (Estimate, error) {
	var e, f int64
	switch precision {
	case "bf16", "bf16_sr", "fp16", "fp8":
		e, f = 2, 4
	case "fp32", "tf32":
		e, f = 4, 4
	case "fp64":
		e, f = 8, 8
	default:
		return nil, fmt.Errorf("there is no plan for the memory of precision %q", precision)
	}
	p := s.Parameters()
	n := int64(sequences) * int64(s.Context)
	heads, ffn, width := int64(s.Heads), int64(s.FFN), int64(s.Heads)*int64(s.HeadDim)

	attention, attentionFormula := e*(s.qkv()+width)+f*heads, "e·(Q + HE) + f·H"
	if s.QKNorm {
		attention += (heads + int64(s.KVHeads)) * (e*int64(s.HeadDim) + f)
		attentionFormula += " + (H+K)·(e·E + f)"
	}
	kept, keptFormula := s.activations(keptBytes{
		input: f * s.dim(), attention: attention, lean: e*(2*s.dim()+2*ffn) + 2*f, last: e*s.dim() + f, stream: 2 * f * s.dim(),
	}, attentionFormula)
	block, blockFormula := n*e*(4*s.dim()+width+s.qkv()+4*ffn), "n·e·(4D + HE + Q + 4F)"
	if precision == "fp8" {
		block, blockFormula = s.quantisedBlock(n), "a block with the FP8 operands of one product"
	}
	if s.Masked { // the masked gradients of two branches
		block, blockFormula = block+2*n*e*s.dim(), blockFormula+" + n·2e·D"
	}
	logits := s.logitRows(f, n) * int64(s.Vocab) * f
	weights := Item{"parameters", f * p, "f·P"}
	if precision == "bf16_sr" {
		weights = Item{"parameters", 2*p + (f-2)*s.gains(), "2·P, and f for each gain"}
	}
	return Estimate{
		weights,
		{"gradients", f * p, "f·P"},
		{"optimizer state", o.State, fmt.Sprintf("%s, %.2f bytes a parameter", o.Name, float64(o.State)/float64(p))},
		{"positions", f * int64(s.Context) * int64(s.HeadDim), "f·T·E (rotary tables)"},
		{"activations", n * kept, "n·(" + keptFormula + ")"},
		{"scratch", max(n*2*e*s.dim()+max(block, logits), o.Scratch), "n·2e·D + max(" + blockFormula + ", logits of one chunk)"},
		{"process", processBytes, "binary, loader, packed blocks, stacks"},
	}, nil
}

// logitRows is how many of n tokens have their logits in one chunk: as many as logitBytes hold, in multiples of 64.
func (s Shape) logitRows(f, n int64) int64 {
	return min(max(logitBytes/(max(int64(s.Vocab), 1)*f)/64*64, 64), n)
}
