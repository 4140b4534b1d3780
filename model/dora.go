package model

import (
	"math"
	"strings"

	"anneal/autograd"
	"anneal/nn"
	"anneal/tensor"
)

// DoRA (Liu et al. 2024, arXiv 2402.09353) applies LoRA to the directions of a weight's rows, and trains the norms m
// of the rows separately:
//
//	W' = m · V / ‖V‖    V = W + α/R·B·A    m [O], ‖V‖ [O] the norms of the rows of V [O, I]
//
// m starts as ‖W‖, so that training begins with the model as it is. Every row of a fused weight has its own norm, so
// fusing queries, keys and values changes nothing. Gradients treat ‖V‖ as a constant (§4.3), as in Hugging Face's
// peft. m is in the optimizer's group of norms, which has no weight decay.
//
// Memory: that of LoRA, m, and two matrices of a layer at a time in temporary memory. Time: the products of full
// fine-tuning. The paper finds it ahead of LoRA of the same rank, most of all at small ranks.

// doraMagnitude is the end of the names of m.
const doraMagnitude = ".dora_magnitude"

// magnitude declares the norms of the rows of a matrix [out, in].
func (b *builder) magnitude(name string, out int) *autograd.Param {
	return &b.gain(name+doraMagnitude, out, 1).Param
}

// Magnitude returns the name of the weight whose row norms p holds, and whether p holds any.
func Magnitude(p *nn.Param) (weight string, is bool) { return strings.CutSuffix(p.Name, doraMagnitude) }

// RowNorms writes the Euclidean norms of the rows of w [O, I] to norms [O], both in host memory. A weight whose
// magnitudes are its own norms keeps its bits, because devices sum in float64, too. The order of the sum may differ
// there, but after rounding to the type of the magnitudes this changes only one norm in some hundred million.
func RowNorms(norms, w *tensor.Tensor) {
	cols := w.Dim(1)
	for r := range norms.Len() {
		sum := 0.0
		for i := r * cols; i < (r+1)*cols; i++ {
			x := w.Float64(i)
			sum += x * x
		}
		norms.SetFloat64(r, math.Sqrt(sum))
	}
}
