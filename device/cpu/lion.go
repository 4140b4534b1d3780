package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Lion implements device.Device.
func (d *Device) Lion(p, g, m *tensor.Tensor, o device.Lion) {
	if updates("Lion", p, g, m) {
		d.f64.runLion(p, g, m, o)
	} else {
		d.f32.runLion(p, g, m, o)
	}
}

type lion[T vec.Float] struct {
	vec     *vec.Table[T]
	p, g, m []T
	step    vec.Lion[T]
}

func (e *engine[T]) runLion(p, g, m *tensor.Tensor, o device.Lion) {
	j := &e.lion
	*j = lion[T]{vec: &e.vec, p: e.view(p).native, g: e.view(g).native, m: e.view(m).native}
	j.step = vec.Lion[T]{
		Scale: T(o.Scale),
		Beta1: T(o.Beta1), Keep1: T(1 - o.Beta1),
		Beta2: T(o.Beta2), Keep2: T(1 - o.Beta2),
		Decay: T(o.LR * o.Decay), Rate: T(o.LR), Floor: floor[T](o.Cautious),
	}
	e.pool.Run(ceilDiv(len(j.p), chunk), j)
}

// Do updates one stretch of the parameter.
func (j *lion[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.p))
	j.vec.Lion(j.p[from:to], j.g[from:to], j.m[from:to], &j.step)
}
