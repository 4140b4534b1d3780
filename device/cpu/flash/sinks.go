package flash

import (
	"math"

	"anneal/tensor"
)

// An attention sink (Xiao et al. 2023, arXiv 2309.17453; learned, as in gpt-oss) is an additional logit in the softmax
// of every query of a head. It has no value, so it takes the weight that a query does not need. It is added when the
// sums of a query are divided, which is the same as starting the sums with it. Loops over keys ignore the sink, and
// backward finds it in the log-sum-exp.

// sunk returns the log-sum-exp, and the factor of the output, of a query with the maximum m, in units of log 2, the sum
// l of its powers, and a sink. A query that sees neither keys nor a sink, because that is −Inf, has no weights.
func sunk[T tensor.Number](m, l T, sink float64) (lse, factor T) {
	z := sink * math.Log2E
	top := max(float64(m), z)
	keys := math.Exp2(float64(m) - top)
	sum := float64(l)*keys + math.Exp2(z-top)
	if sum == 0 {
		return T(math.Inf(-1)), 0
	}
	return T(top*math.Ln2 + math.Log(sum)), T(keys / sum)
}
