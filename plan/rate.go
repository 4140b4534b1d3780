package plan

import (
	"fmt"
	"math"
)

// Rate returns the learning rate of an optimizer for a width and a number of training tokens, with its rule; 0 if the
// optimizer has not been tuned, or if the width or the number is not positive. The rate falls with the square root of
// the width, and with the power 0.32 of the tokens (Bjorck et al. 2024, arXiv 2409.19913); its level is from runs on
// Go source (docs/budget.md).
func Rate(optimizer string, width int, tokens float64) (rate float64, rule string) {
	base := map[string]float64{"muon": 7e-3, "adamw": 3e-3}[optimizer]
	if base == 0 || width < 1 || !(tokens > 0) {
		return 0, ""
	}
	rate = base * math.Sqrt(rateWidth/float64(width)) * math.Pow(rateTokens/tokens, 0.32)
	return rate, fmt.Sprintf("%g · √(%d / width) · (6.4M / tokens)^0.32", base, rateWidth)
}

const (
	rateWidth  = 128
	rateTokens = 6.4e6

	// TableRate is the ratio of AdamW's rate for embeddings and the head to Muon's rate for matrices.
	TableRate = 2.3

	// TableBeta2 is AdamW's β2 for embeddings and the head, where rows of rare tokens have few gradients.
	TableBeta2 = 0.99
)
