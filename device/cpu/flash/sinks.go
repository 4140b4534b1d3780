package flash

import (
	"math"

	"anneal/tensor"
)

// An attention sink (Xiao et al. 2023, arXiv 2309.17453; learned, as in gpt-oss) is a logit that the softmax of every
// query of a head has beside its scores, without a value: what a query has no use for goes there. The sums of a query
// begin with it, or, which is the same, it joins them when they are divided. Loops over keys do not know of it, and
// backward finds it in the log-sum-exp.

// sunk returns the log-sum-exp, and the factor of the output, of a query with the maximum m, in units of log 2, the sum
// l of its powers, and a sink.
func sunk[T tensor.Number](m, l T, sink float64) (lse, factor T) {
	z := sink * math.Log2E
	top := max(float64(m), z)
	keys := math.Exp2(float64(m) - top)
	sum := float64(l)*keys + math.Exp2(z-top)
	return T(top*math.Ln2 + math.Log(sum)), T(keys / sum)
}
