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

// Schedule-free AdamW computes gradients at weights y but trains other weights x, which are in its state
// (optim.ScheduleFree). While a run trains, the parameters hold y. Evaluations read x in the way they read the moving
// average. Checkpoints store x in the place of the weights, so everything that uses a model gets x, and y in the
// optimizer's file.

// isScheduleFree reports whether the trained weights are in the state of an optimizer.
func isScheduleFree(o config.Optimizer) bool { return o.Name == "schedulefree" }

// showsOthers reports whether evaluations read other weights than steps do.
func showsOthers(cfg *config.Config) bool {
	return cfg.Average.EMA > 0 || isScheduleFree(cfg.Optimizer)
}

// layoutTrained lists the trained weights, if they are not the ones that steps read.
func layoutTrained(o config.Optimizer, list []updated) (x []tensor.Tensor) {
	for i := range list {
		if isScheduleFree(o) {
			x = append(x, list[i].state[0].Tensor)
		}
	}
	return x
}

// startTrained sets the trained weights to those that the first step reads.
func (h *holding) startTrained(dev device.Device) {
	for i := range h.trained {
		dev.Copy(&h.trained[i], &h.params[i].Value)
	}
}

// weightTensors lists the weights of updated parameter i: the trained weights, and y if it differs from them.
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

// at calls measure while the model computes with other weights. There is one tensor of weights for each parameter, or
// piece of one, that this rank updates.
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

// swap exchanges the given weights with those of the parameters, so that the model computes with them until the next
// call. It swaps tensors without copying their elements.
func swap(weights []tensor.Tensor, params []*nn.Param) {
	for i := range weights {
		weights[i], params[i].Value = params[i].Value, weights[i]
	}
}
