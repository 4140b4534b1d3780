package train

import (
	"math"
	"math/bits"

	"anneal/precision"
	"anneal/train/config"
)

// lossFactor returns what the gradients of a step are multiplied by: they are of the sum of the losses, the loss scale is of
// their mean. It is a power of two if the scale is, so that it rounds nothing.
func (t *Trainer) lossFactor() float64 {
	if !t.policy.Scaled() {
		return 1
	}
	tokens := t.accum * t.batch.Tokens.Len()
	return t.lossScale.Scale / float64(uint64(1)<<bits.Len64(uint64(tokens-1)))
}

// newLossScale returns the loss scale of a run: 1, constant, for policies that need none.
func newLossScale(p precision.Policy, c config.LossScale) precision.LossScale {
	if !p.Scaled() {
		return precision.LossScale{Scale: 1}
	}
	return precision.LossScale{Dynamic: c.Dynamic, Scale: c.Init, Interval: c.Interval, Floor: c.Floor}
}

// restoreLossScale takes over what a checkpoint counted, and the scale that it had found unless the configuration says
// which it is.
func (t *Trainer) restoreLossScale(saved precision.LossScale) {
	s := &t.lossScale
	s.Good, s.Overflow = saved.Good, saved.Overflow
	if s.Dynamic && saved.Dynamic {
		s.Scale = max(saved.Scale, s.Floor)
	}
}

// overflowed adapts the loss scale to an update whose gradients have this norm, and reports whether the update is to be
// skipped because some have overflowed that need not with the scale adapted. A loss that is not finite is no overflow of
// gradients: a smaller scale would not help it, and it is left to the guard.
func (t *Trainer) overflowed(loss, norm float64) bool {
	if !t.policy.Scaled() || !finite(loss) {
		return false
	}
	overflow := !finite(norm)
	return t.lossScale.Update(overflow) && overflow
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// scaleOfGradients returns the loss scale, 0 for policies that have none.
func (t *Trainer) scaleOfGradients() float64 {
	if !t.policy.Scaled() {
		return 0
	}
	return t.lossScale.Scale
}
