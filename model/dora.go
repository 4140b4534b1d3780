package model

import (
	"math"
	"strings"

	"anneal/autograd"
	"anneal/nn"
	"anneal/tensor"
)

// DoRA (Liu et al. 2024, arXiv 2402.09353) is LoRA on the directions of a weight's rows, whose norms m it trains apart:
//
//	W' = m · V / ‖V‖    V = W + α/R·B·A    m [O], ‖V‖ [O] the norms of the rows of V [O, I]
//
// m starts as ‖W‖, so that training begins with the model as it is. Of a fused weight every row has its own norm, so
// that queries, keys and values have those that they would have apart. In gradients ‖V‖ is a constant (§4.3), as in
// Hugging Face's peft. m is in the optimizer's group of norms, which has no weight decay.
//
// Memory: that of LoRA, m, and two matrices of a layer at a time in temporary memory. Time: the products of full
// fine-tuning. The paper finds it ahead of LoRA of the same rank, most of all at small ranks.

// doraMagnitude is the end of the names of m.
const doraMagnitude = ".dora_magnitude"

// magnitude declares the norms of the rows of a matrix [out, in].
func (b *builder) magnitude(name string, out int) *autograd.Param {
	return &b.gain(name+doraMagnitude, out, 1).Param
}

// Magnitude returns the name of the weight whose norms p is, if it is that.
func Magnitude(p *nn.Param) (weight string, is bool) { return strings.CutSuffix(p.Name, doraMagnitude) }

// RowNorms writes the Euclidean norms of the rows of w [O, I] to norms [O], both in host memory. A weight with its own
// norms as magnitudes keeps its bits: devices, too, sum in float64, where the order of a sum does not show in the norm,
// which is rounded to the type of the magnitudes, but for one in some hundred million.
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
