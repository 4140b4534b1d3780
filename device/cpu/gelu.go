package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// GELU implements device.Device.
func (d *Device) GELU(act, x *tensor.Tensor) {
	const op = "GELU"
	length(op, "x", x, act.Len())
	storage(op, "act", act, reference(act))
	storage(op, "x", x, reference(act))
	if reference(act) {
		d.f64.runGELU(act, x)
	} else {
		d.f32.runGELU(act, x)
	}
}

// GELUGrad implements device.Device.
func (d *Device) GELUGrad(dx, dact, x *tensor.Tensor) {
	const op = "GELUGrad"
	length(op, "dact", dact, dx.Len())
	length(op, "x", x, dx.Len())
	storage(op, "dx", dx, reference(dx))
	storage(op, "dact", dact, reference(dx))
	storage(op, "x", x, reference(dx))
	if reference(dx) {
		d.f64.runGELUGrad(dx, dact, x)
	} else {
		d.f32.runGELUGrad(dx, dact, x)
	}
}

type gelu[T vec.Float] struct {
	e      *engine[T]
	act, x view[T]
	narrow *vec.Narrow[T]
	n      int
}

func (e *engine[T]) runGELU(act, x *tensor.Tensor) {
	j := &e.gelu
	*j = gelu[T]{e: e, act: e.view(act), x: e.view(x), n: act.Len()}
	j.narrow = e.narrow(j.n, &j.act, &j.x)
	e.reserve(2 * tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do computes one stretch.
func (j *gelu[T]) Do(worker, task int) {
	buf := j.e.buffers(worker, tile)
	from, to := span(task, chunk, j.n)
	if j.narrow != nil {
		j.narrow.GELU(j.act.bf16[from:to], j.x.bf16[from:])
		return
	}
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		x := j.x.load(buf.at(0), i, n)
		act := j.act.room(buf.at(1), i, n)
		j.e.vec.GELU(act, x)
		j.act.store(act, i)
	}
}

type geluGrad[T vec.Float] struct {
	e           *engine[T]
	dx, dact, x view[T]
	narrow      *vec.Narrow[T]
	n           int
}

func (e *engine[T]) runGELUGrad(dx, dact, x *tensor.Tensor) {
	j := &e.geluGrad
	*j = geluGrad[T]{e: e, dx: e.view(dx), dact: e.view(dact), x: e.view(x), n: dx.Len()}
	j.narrow = e.narrow(j.n, &j.dx, &j.dact, &j.x)
	e.reserve(3 * tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do computes the gradients of one stretch.
func (j *geluGrad[T]) Do(worker, task int) {
	buf := j.e.buffers(worker, tile)
	from, to := span(task, chunk, j.n)
	if j.narrow != nil {
		j.narrow.GELUGrad(j.dx.bf16[from:to], j.dact.bf16[from:], j.x.bf16[from:])
		return
	}
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		dact := j.dact.load(buf.at(0), i, n)
		x := j.x.load(buf.at(1), i, n)
		dx := j.dx.room(buf.at(2), i, n)
		j.e.vec.GELUGrad(dx, dact, x)
		j.dx.store(dx, i)
	}
}
