package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Softcap implements device.Device.
func (d *Device) Softcap(x *tensor.Tensor, limit float64) {
	if reference(x) {
		d.f64.runSoftcap(x, limit)
	} else {
		d.f32.runSoftcap(x, limit)
	}
}

type softcap[T vec.Float] struct {
	e     *engine[T]
	x     view[T]
	limit T
	n     int
}

func (e *engine[T]) runSoftcap(x *tensor.Tensor, limit float64) {
	j := &e.softcap
	*j = softcap[T]{e: e, x: e.view(x), limit: T(limit), n: x.Len()}
	e.reserve(tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do caps one stretch.
func (j *softcap[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	for i := from; i < to; i += tile {
		row := j.x.load(j.e.scratch[worker], i, min(tile, to-i))
		j.e.vec.Softcap(row, row, j.limit)
		j.x.store(row, i)
	}
}
