package train

import (
	"context"
	"math"

	"anneal/dataset"
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// average is an exponential moving average of the weights (Polyak & Juditsky 1992; Tarvainen & Valpola 2017, arXiv
// 1703.01780), updated after every applied update t:
//
//	a ← d·a + (1−d)·w,  d = min(decay, (1+t)/(10+t))
//
// It starts as the initial weights. The rising d forgets these within a few updates, so short runs have a useful
// average too. Evaluation reports it beside the weights, and `--weights ema` generates from it, evaluates and exports
// it.
//
// Memory: 4 bytes per parameter (8 in the reference mode), in a separate arena; checkpoints store it in
// average.safetensors. Off by default. average.ema = 0.999 averages over about a thousand updates, too many for runs
// of a few hundred. Not needed if the learning rate falls to a tenth or less: the weights then hardly move and are
// close to their average.
type average struct {
	decay  float64
	values []tensor.Tensor // one for each parameter, or piece of one, that is updated here; empty without an average
}

// layoutAverage allocates the average of weights.
func layoutAverage(decay float64, arena *tensor.Arena, params []*nn.Param) average {
	a := average{decay: decay}
	for _, p := range params {
		a.values = append(a.values, arena.New(p.Format(), p.Value.Shape()...))
	}
	return a
}

// start sets the average to the weights.
func (a *average) start(params []*nn.Param, dev device.Device) {
	for i := range a.values {
		dev.Copy(&a.values[i], &params[i].Value)
	}
}

// restored sets the average of weights that updates no longer change to these weights: before, they may have moved.
func (a *average) restored(weights []updated, dev device.Device) {
	for i := range a.values {
		if weights[i].still() {
			dev.Copy(&a.values[i], &weights[i].Value)
		}
	}
}

// update adds the weights after update t, from 1. Weights that never change equal their average already, and rounding
// would change it.
func (a *average) update(t int, weights []updated, dev device.Device) {
	d := math.Min(a.decay, float64(1+t)/float64(10+t))
	for i := range a.values {
		if !weights[i].still() {
			dev.Combine(&a.values[i], &a.values[i], &weights[i].Value, device.Combination{X: d, Y: 1 - d})
		}
	}
}

// EvaluateAverage is Evaluate for the average of the weights; without an average its result is unevaluated.
func (t *Trainer) EvaluateAverage(ctx context.Context, text dataset.HeldOut, limit int) (EvalResult, error) {
	if t.average.decay == 0 { // not len(values): a rank that owns nothing has no values but takes part
		return Unevaluated, nil
	}
	return t.evaluateAt(t.evaluation(ctx), t.average.values, text, limit)
}
