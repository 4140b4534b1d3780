package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Footprint is the memory in bytes for training or running a model, by arena.
type Footprint struct {
	Params, Grads int // weights and position tables; gradients
	Keep          int // activations kept for backward, and the residual stream
	Temp          int // temporaries of one block, logits of one chunk
	Batch         int // token ids, targets, positions, losses
	Cache         int // keys and values kept for generation
}

// Measure returns the footprint of training on micro-batches of rows sequences of T tokens. Without grad it returns
// that of the forward pass, which may also be over sequences that share their beginnings. The figures are exact,
// because Measure runs the model's own code on a device that does not compute.
func Measure(c Config, p precision.Policy, rows, tokens int, grad bool) Footprint {
	params, grads := tensor.NewMeasure("parameters"), tensor.NewMeasure("gradients")
	keep, temp, batch := tensor.NewMeasure("activations"), tensor.NewMeasure("scratch"), tensor.NewMeasure("batch")
	m := New(c, MemoryOf(device.Null{}, p, params, grads))
	b := NewBatch(batch, p, rows, tokens)
	b.Seq.Noise.Calm = true // a dropped branch would take no memory
	if !grad {
		b.Branch()
	}
	t := autograd.NewTape(device.Null{}, p.Types(), keep, temp)
	t.Reset(grad)
	m.Loss(t, b)
	if grad {
		t.Backward()
	}
	return Footprint{
		Params: params.Peak(), Grads: grads.Peak(), Keep: keep.Peak(), Temp: temp.Peak(), Batch: batch.Peak(),
	}
}
