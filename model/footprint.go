package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Footprint is the memory in bytes that training a model takes, arena by arena.
type Footprint struct {
	Params, Grads int // weights with position tables; gradients
	Keep          int // activations kept for backward, and the residual stream
	Temp          int // temporaries of one block, logits of one chunk
	Batch         int // token ids, targets, positions, losses
	Cache         int // keys and values kept for generating
}

// Measure returns the exact footprint of training on micro-batches of rows sequences of T tokens (or, without grad, of
// only the forward pass). It runs the model's own code on a device that computes nothing, so it cannot drift from the truth.
func Measure(c Config, p precision.Policy, rows, tokens int, grad bool) Footprint {
	params, grads := tensor.NewMeasure("parameters"), tensor.NewMeasure("gradients")
	keep, temp, batch := tensor.NewMeasure("activations"), tensor.NewMeasure("scratch"), tensor.NewMeasure("batch")
	m := New(c, MemoryOf(device.Null{}, p, params, grads))
	b := NewBatch(batch, p, rows, tokens)
	b.Seq.Noise.Calm = true // a branch that is dropped takes nothing
	t := autograd.NewTape(device.Null{}, p.Types(), keep, temp)
	t.Reset(grad)
	m.Loss(t, b)
	if grad {
		t.Backward()
	}
	return Footprint{Params: params.Peak(), Grads: grads.Peak(), Keep: keep.Peak(), Temp: temp.Peak(), Batch: batch.Peak()}
}
