package train

import (
	"context"
	"errors"

	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Schedule-free AdamW computes gradients at weights y and trains others, x, which its state holds (optim.ScheduleFree).
// While a run trains, the parameters are y. Evaluations read x, as they read the moving average, and checkpoints have x
// where other optimizers have the weights, so that everything that uses a model gets x. y is in the optimizer's file.

// isScheduleFree reports whether the trained weights are in the state of an optimizer.
func isScheduleFree(o config.Optimizer) bool { return o.Name == "schedulefree" }

// showsOthers reports whether evaluations read other weights than those with which a step computes.
func showsOthers(cfg *config.Config) bool {
	return cfg.Average.EMA > 0 || isScheduleFree(cfg.Optimizer)
}

// layoutTrained lists the trained weights, if they are not those with which a step computes.
func layoutTrained(o config.Optimizer, list []updated) (x []tensor.Tensor) {
	for i := range list {
		if isScheduleFree(o) {
			x = append(x, list[i].state[0].Tensor)
		}
	}
	return x
}

// startTrained sets the trained weights to those with which the first step computes.
func (h *holding) startTrained(dev device.Device) {
	for i := range h.trained {
		dev.Copy(&h.trained[i], &h.params[i].Value)
	}
}

// weightTensors lists the weights of updated parameter i: the trained ones, and y if it is another.
func (t *Trainer) weightTensors(i int) []Tensor {
	if len(t.trained) == 0 {
		return []Tensor{t.piece(i, "", &t.updated[i].Value, 1, OfModel)}
	}
	return []Tensor{
		t.piece(i, "", &t.trained[i], 1, OfModel), t.piece(i, ".y", &t.updated[i].Value, 1, OfOptimizer),
	}
}

// evaluateAt is Evaluate for other weights; see at.
func (t *Trainer) evaluateAt(ctx context.Context, weights []tensor.Tensor, text dataset.HeldOut,
	limit int) (r EvalResult, err error) {
	err = t.at(weights, func() (err error) {
		r, err = t.Evaluator.Evaluate(ctx, text, limit)
		return err
	})
	return r, err
}

// at has measure compute with other weights, one tensor for each parameter, or piece of one, that is updated here.
func (t *Trainer) at(weights []tensor.Tensor, measure func() error) error {
	if t.whole() {
		swap(weights, t.model.Params())
		defer swap(weights, t.model.Params())
		return measure()
	}
	if err := t.shard.Show(weights); err != nil {
		return err
	}
	return errors.Join(measure(), t.shard.Show(nil))
}

// swap exchanges weights with those of the parameters, so that the model computes with them until the next call. It
// copies no numbers.
func swap(weights []tensor.Tensor, params []*nn.Param) {
	for i := range weights {
		weights[i], params[i].Value = params[i].Value, weights[i]
	}
}
