package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// ReLUSquared implements device.Device.
func (d *Device) ReLUSquared(act, x *tensor.Tensor) {
	const op = "ReLUSquared"
	shape(op, "x", x, act.Rows(), act.Cols())
	storage(op, "act", act, reference(act))
	storage(op, "x", x, reference(act))
	if reference(act) {
		d.f64.runReLUSquared(act, x)
	} else {
		d.f32.runReLUSquared(act, x)
	}
}

// ReLUSquaredGrad implements device.Device.
func (d *Device) ReLUSquaredGrad(dx, dact, x *tensor.Tensor) {
	const op = "ReLUSquaredGrad"
	shape(op, "dx", dx, dact.Rows(), dact.Cols())
	shape(op, "x", x, dact.Rows(), dact.Cols())
	storage(op, "dx", dx, reference(dact))
	storage(op, "dact", dact, reference(dact))
	storage(op, "x", x, reference(dact))
	if reference(dact) {
		d.f64.runReLUSquaredGrad(dx, dact, x)
	} else {
		d.f32.runReLUSquaredGrad(dx, dact, x)
	}
}

type reluSquared[T vec.Float] struct {
	e      *engine[T]
	act, x view[T]
	narrow *vec.Narrow[T]
	n      int
}

func (e *engine[T]) runReLUSquared(act, x *tensor.Tensor) {
	j := &e.reluSquared
	*j = reluSquared[T]{e: e, act: e.view(act), x: e.view(x), n: act.Len()}
	j.narrow = e.narrow(j.n, &j.act, &j.x)
	e.reserve(2 * tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do computes one stretch.
func (j *reluSquared[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	if j.narrow != nil {
		j.narrow.ReLUSquared(j.act.bf16[from:to], j.x.bf16[from:to])
		return
	}
	buf := j.e.buffers(worker, tile)
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		act := j.act.room(buf.at(0), i, n)
		j.e.vec.ReLUSquared(act, j.x.load(buf.at(1), i, n))
		j.act.store(act, i)
	}
}

type reluSquaredGrad[T vec.Float] struct {
	e           *engine[T]
	dx, dact, x view[T]
	narrow      *vec.Narrow[T]
	n           int
}

func (e *engine[T]) runReLUSquaredGrad(dx, dact, x *tensor.Tensor) {
	j := &e.reluGrad
	*j = reluSquaredGrad[T]{e: e, dx: e.view(dx), dact: e.view(dact), x: e.view(x), n: dx.Len()}
	j.narrow = e.narrow(j.n, &j.dx, &j.dact, &j.x)
	e.reserve(3 * tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do computes the gradients of one stretch.
func (j *reluSquaredGrad[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	if j.narrow != nil {
		j.narrow.ReLUSquaredGrad(j.dx.bf16[from:to], j.dact.bf16[from:to], j.x.bf16[from:to])
		return
	}
	buf := j.e.buffers(worker, tile)
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		dx := j.dx.room(buf.at(0), i, n)
		j.e.vec.ReLUSquaredGrad(dx, j.dact.load(buf.at(1), i, n), j.x.load(buf.at(2), i, n))
		j.dx.store(dx, i)
	}
}
