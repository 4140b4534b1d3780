package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Descend implements device.Device.
func (d *Device) Descend(p, u *tensor.Tensor, o device.Descend) {
	if updates("Descend", p, u) {
		d.f64.runDescend(p, u, o)
	} else {
		d.f32.runDescend(p, u, o)
	}
}

type descend[T vec.Float] struct {
	vec  *vec.Table[T]
	p, u []T
	step vec.Descend[T]
}

func (e *engine[T]) runDescend(p, u *tensor.Tensor, o device.Descend) {
	j := &e.descend
	*j = descend[T]{vec: &e.vec, p: e.view(p).native, u: e.view(u).native}
	j.step = vec.Descend[T]{Rate: T(o.LR), Decay: T(o.Shrink), Floor: floor[T](o.Cautious)}
	e.pool.Run(ceilDiv(len(j.p), chunk), j)
}

// Do updates one stretch of the parameter.
func (j *descend[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.p))
	j.vec.Descend(j.p[from:to], j.u[from:to], &j.step)
}
