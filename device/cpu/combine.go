package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Combine implements device.Device.
func (d *Device) Combine(dst, x, y *tensor.Tensor, c device.Combination) {
	const op = "Combine"
	ref := reference(dst)
	shape(op, "x", x, dst.Rows(), dst.Cols())
	shape(op, "y", y, dst.Rows(), dst.Cols())
	wide(op, "dst", dst, ref)
	wide(op, "x", x, ref)
	storage(op, "y", y, ref)
	if ref {
		d.f64.runCombine(dst, x, y, c)
	} else {
		d.f32.runCombine(dst, x, y, c)
	}
}

type combine[T vec.Float] struct {
	e        *engine[T]
	dst, x   []T
	y        view[T]
	a, b     T
	diagonal T
	cols     int
}

func (e *engine[T]) runCombine(dst, x, y *tensor.Tensor, c device.Combination) {
	j := &e.combine
	*j = combine[T]{
		e: e, dst: e.view(dst).native, x: e.view(x).native, y: e.view(y),
		a: T(c.X), b: T(c.Y), diagonal: T(c.Diagonal), cols: dst.Cols(),
	}
	e.reserve(chunk)
	e.pool.Run(ceilDiv(len(j.dst), chunk), j)
}

// Do combines one stretch. Diagonal elements are at multiples of cols+1.
func (j *combine[T]) Do(worker, task int) {
	from, to := span(task, chunk, len(j.dst))
	y := j.y.load(j.e.scratch[worker], from, to-from)
	j.e.vec.Mix(j.dst[from:to], j.x[from:to], y, j.a, j.b)
	if j.diagonal == 0 {
		return
	}
	to = min(to, j.cols*j.cols)
	for i := ceilDiv(from, j.cols+1) * (j.cols + 1); i < to; i += j.cols + 1 {
		j.dst[i] += j.diagonal
	}
}
