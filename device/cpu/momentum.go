package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Momentum implements device.Device.
func (d *Device) Momentum(p, g, m *tensor.Tensor, o device.Momentum) {
	if updates("Momentum", p, g, m) {
		d.f64.runMomentum(p, g, m, o)
	} else {
		d.f32.runMomentum(p, g, m, o)
	}
}

type momentum[T vec.Float] struct {
	vec     *vec.Table[T]
	p, g, m []T
	step    vec.Momentum[T]
}

func (e *engine[T]) runMomentum(p, g, m *tensor.Tensor, o device.Momentum) {
	j := &e.momentum
	*j = momentum[T]{vec: &e.vec, p: e.view(p).native, g: e.view(g).native, m: e.view(m).native}
	j.step = vec.Momentum[T]{Scale: T(o.Scale), Decay: T(o.Decay), Beta: T(o.Beta), Keep: T(o.Keep), RateM: T(o.LR)}
	if o.Nesterov {
		j.step.RateG, j.step.RateM = T(o.LR), T(o.LR*o.Beta)
	}
	e.pool.Run(ceilDiv(len(j.p), chunk), j)
}

// Do updates one stretch of the parameter.
func (j *momentum[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.p))
	j.vec.Momentum(j.p[from:to], j.g[from:to], j.m[from:to], &j.step)
}
