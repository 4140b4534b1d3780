package train

import (
	"context"
	"math"

	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/tensor"
	"anneal/train/checkpoint"
	"anneal/train/config"
)

// average is an exponential moving average of the weights (Polyak & Juditsky 1992; Tarvainen & Valpola 2017, arXiv
// 1703.01780), updated after every update t that was applied:
//
//	a ← d·a + (1−d)·w,  d = min(decay, (1+t)/(10+t))
//
// It starts as the initial weights, which the rising d forgets within a few updates, so that short runs have an average
// too. Evaluation reports it beside the weights, and `--weights ema` generates from it, evaluates and exports it.
//
// Memory: 4 bytes a parameter (8 in the reference mode), in an arena of its own; a checkpoint holds it in average.safetensors.
// Off by default; average.ema = 0.999 looks back on about a thousand updates, too long for runs of a few hundred. Not needed
// where the learning rate falls to a tenth or less: weights that hardly move any more are their own average.
type average struct {
	decay  float64
	values []tensor.Tensor // one for each parameter; none if there is no average
}

// averageBytes is what the average of a run takes: as much as the gradients, whose shapes and format it has.
func averageBytes(cfg *config.Config, f model.Footprint) int {
	if cfg.Average.EMA == 0 {
		return 0
	}
	return f.Grads
}

// startAverage lays out the average, if there is to be one, with the weights as they are.
func (t *Trainer) startAverage(bytes int) error {
	if bytes == 0 {
		return nil
	}
	arenas, err := newArenas(t.dev, arenaSize{"weight average", bytes})
	if err != nil {
		return err
	}
	t.arenas = append(t.arenas, arenas...)
	t.average.decay = t.cfg.Average.EMA
	for _, p := range t.model.Params() {
		t.average.values = append(t.average.values, arenas[0].New(p.Grad.DType(), p.Value.Shape()...))
	}
	t.average.start(t.model.Params(), t.dev)
	return nil
}

// start sets the average to the weights.
func (a *average) start(params []*nn.Param, dev device.Device) {
	for i := range a.values {
		dev.Copy(&a.values[i], &params[i].Value)
	}
}

// update takes in the weights after update t, from 1.
func (a *average) update(t int, params []*nn.Param, dev device.Device) {
	d := math.Min(a.decay, float64(1+t)/float64(10+t))
	for i := range a.values {
		dev.Combine(&a.values[i], &a.values[i], &params[i].Value, device.Combination{X: d, Y: 1 - d})
	}
}

// swap exchanges the average with the weights: the model computes with it, until it is called again. No number is moved.
func (a *average) swap(params []*nn.Param) {
	for i := range a.values {
		a.values[i], params[i].Value = params[i].Value, a.values[i]
	}
}

// averageTensors lists the average as a checkpoint holds it.
func (t *Trainer) averageTensors() []checkpoint.Tensor {
	var list []checkpoint.Tensor
	for i, p := range t.model.Params()[:len(t.average.values)] {
		list = append(list, averageTensor(t.dev, p.Name, &t.average.values[i]))
	}
	return list
}

// averageTensor is the average of the parameter of a name, in x.
func averageTensor(dev device.Memory, name string, x *tensor.Tensor) checkpoint.Tensor {
	t := checkpointTensor(dev, name+".ema", x)
	t.Average = true
	return t
}

// evaluateAverage is evaluate for the average of the weights; without one nothing is known of it.
func (t *Trainer) evaluateAverage(ctx context.Context, c *corpus, limit int) (EvalResult, error) {
	if t.average.values == nil {
		return unevaluated, nil
	}
	t.average.swap(t.model.Params())
	defer t.average.swap(t.model.Params())
	return t.evaluate(ctx, c, limit)
}
