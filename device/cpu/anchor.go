package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Anchor implements device.Device.
func (d *Device) Anchor(p, start, weight *tensor.Tensor, rate float64) {
	if updates("Anchor", p, start, weight) {
		d.f64.runAnchor(p, start, weight, rate)
	} else {
		d.f32.runAnchor(p, start, weight, rate)
	}
}

type anchor[T vec.Float] struct {
	p, start, weight []T
	rate             T
}

func (e *engine[T]) runAnchor(p, start, weight *tensor.Tensor, rate float64) {
	j := &e.anchor
	*j = anchor[T]{p: e.view(p).native, start: e.view(start).native, weight: e.view(weight).native, rate: T(rate)}
	e.pool.Run(ceilDiv(len(j.p), chunk), j)
}

// Do moves one stretch of the parameter.
func (j *anchor[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.p))
	p, start, weight := j.p[from:to], j.start[from:to], j.weight[from:to]
	for i := range p {
		pull := j.rate * weight[i]
		p[i] += pull / (1 + pull) * (start[i] - p[i])
	}
}
