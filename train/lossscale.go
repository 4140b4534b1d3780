package train

import (
	"math"
	"math/bits"

	"anneal/config"
	"anneal/precision"
)

// lossFactor returns the factor of a step's gradients: they are of the sum of the losses, while the loss scale
// applies to the mean. It is a power of two if the scale is, so it causes no rounding.
func (t *Trainer) lossFactor() float64 {
	if !t.policy.Scaled() {
		return 1
	}
	tokens := t.accum * t.batch.Tokens.Len()
	return t.lossScale.Scale / float64(uint64(1)<<bits.Len64(uint64(tokens-1)))
}

// newLossScale returns the loss scale of a run: constant 1 for policies that need none.
func newLossScale(p precision.Policy, c config.LossScale) precision.LossScale {
	if !p.Scaled() {
		return precision.LossScale{Scale: 1}
	}
	return precision.LossScale{
		Dynamic: c.Dynamic, Scale: c.Init, Interval: c.Interval, Floor: c.Floor,
		Hysteresis: c.Hysteresis,
	}
}

// restoreLossScale restores the counters of a checkpoint, and its scale unless the configuration sets a constant one.
func (t *Trainer) restoreLossScale(saved precision.LossScale) {
	s := &t.lossScale
	s.Good, s.Overflow, s.Since = saved.Good, saved.Overflow, saved.Since
	if s.Dynamic && saved.Dynamic {
		s.Scale = max(saved.Scale, s.Floor)
	}
}

// overflowed adapts the loss scale to an update with this gradient norm. It reports whether to skip the update because
// gradients overflowed and a smaller scale may avoid that. A non-finite loss is left to the guard, because no loss
// scale would fix it.
func (t *Trainer) overflowed(loss, norm float64) bool {
	if !t.policy.Scaled() || !finite(loss) {
		return false
	}
	overflow := !finite(norm)
	return t.lossScale.Update(overflow) && overflow
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// LossScale returns the loss scale, 0 for policies without one.
func (t *Trainer) LossScale() float64 {
	if !t.policy.Scaled() {
		return 0
	}
	return t.lossScale.Scale
}
