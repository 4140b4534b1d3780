package plan

import (
	"fmt"
	"strings"
)

// keptBytes is what a token's activations take, part by part.
type keptBytes struct {
	input     int64 // of a segment that backward runs again: a copy of the residual stream
	attention int64 // kept by the attention of a layer
	lean      int64 // kept by the rest of the layer
	last      int64 // kept by the final norm
	stream    int64 // the residual stream and its gradient
}

// activations returns the most bytes per token that exist at one time, and the formula of it. Without recomputation that is
// at the end of the forward pass. Backward frees layers as it goes, and then needs room to run others again: all of a
// segment above the inputs of those before it, or the attention of one layer.
func (s Shape) activations(k keptBytes, attentionFormula string) (int64, string) {
	r, layers := s.Recompute, int64(s.Layers)
	layer := k.lean + k.attention
	const leanFormula, inputFormula = "e·(2D + 2F) + 2f", "f·D"
	var segments, peak int64
	var formula string
	larger := func(bytes int64, text string) {
		if bytes > peak {
			peak, formula = bytes, text
		}
	}
	for from := 0; from < r.Whole; from += r.Segment {
		segments++
		again := int64(min(r.Segment, r.Whole-from))
		larger(segments*k.input+again*layer, sum(times(segments, inputFormula), times(again, leanFormula+" + "+attentionFormula)))
	}
	lean, plain := int64(r.Attention), layers-int64(r.Whole)-int64(r.Attention)
	below := segments*k.input + lean*k.lean
	belowFormula := sum(times(segments, inputFormula), times(lean, leanFormula))
	larger(below+plain*layer+k.last, sum(belowFormula, times(plain, leanFormula+" + "+attentionFormula), "e·D + f"))
	if lean > 0 && plain == 0 {
		larger(below+k.last+k.attention, sum(belowFormula, "e·D + f", attentionFormula))
	} else if lean > 0 {
		larger(below+k.attention, sum(belowFormula, attentionFormula))
	}
	return peak + k.stream, formula + " + 2f·D"
}

// RecomputedFLOPsPerToken counts what backward computes again for a token: the forward pass of whole layers but for the last
// product of each segment, whose result nobody reads, and the joint projection and attention of those layers that drop only
// these. FLOPsPerToken does not include it.
func (s Shape) RecomputedFLOPsPerToken() float64 {
	attention := 2 * float64(s.Context) * float64(s.Heads) * float64(s.HeadDim) // the causal half of two products
	whole := 2*float64(s.matrixPerLayer()) + attention
	part := 2*float64(s.dim()*s.qkv()) + attention
	segments := 0
	if s.Recompute.Whole > 0 {
		segments = (s.Recompute.Whole + s.Recompute.Segment - 1) / s.Recompute.Segment
	}
	down := 2 * float64(s.dim()) * float64(s.FFN)
	return float64(s.Recompute.Whole)*whole - float64(segments)*down + float64(s.Recompute.Attention)*part
}

// times writes a product of a formula, nothing for 0.
func times(n int64, formula string) string {
	switch {
	case n == 0:
		return ""
	case n == 1:
		return formula
	case strings.Contains(formula, " + "):
		return fmt.Sprintf("%d·(%s)", n, formula)
	}
	return fmt.Sprintf("%d·%s", n, formula)
}

// sum joins what is not empty.
func sum(terms ...string) string {
	var some []string
	for _, t := range terms {
		if t != "" {
			some = append(some, t)
		}
	}
	return strings.Join(some, " + ")
}
