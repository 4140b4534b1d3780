package cpu

import (
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Copy implements device.Device.
func (d *Device) Copy(dst, src *tensor.Tensor) {
	length("Copy", "src", src, dst.Len())
	switch {
	case dst.DType() == src.DType():
		d.raw.run(dst.Raw(), src.Raw())
	case reference(dst) || reference(src):
		d.f64.runConvert(dst, src)
	default:
		d.f32.runConvert(dst, src)
	}
}

// Zero implements device.Device.
func (d *Device) Zero(t *tensor.Tensor) { d.raw.run(t.Raw(), nil) }

// Add implements device.Device.
func (d *Device) Add(dst, src *tensor.Tensor) {
	length("Add", "src", src, dst.Len())
	if reference(dst) || reference(src) {
		d.f64.runAdd(dst, src)
	} else {
		d.f32.runAdd(dst, src)
	}
}

// Scale implements device.Device.
func (d *Device) Scale(t *tensor.Tensor, factor float64) {
	if reference(t) {
		d.f64.runScale(t, factor)
	} else {
		d.f32.runScale(t, factor)
	}
}

// raw copies or clears bytes.
type raw struct {
	pool     *pool.Pool
	dst, src []byte
}

const rawChunk = 256 << 10

func (j *raw) run(dst, src []byte) {
	j.dst, j.src = dst, src
	j.pool.Run(ceilDiv(len(dst), rawChunk), j)
}

// Do copies or clears one stretch.
func (j *raw) Do(_, task int) {
	from, to := span(task, rawChunk, len(j.dst))
	if j.src == nil {
		clear(j.dst[from:to])
		return
	}
	copy(j.dst[from:to], j.src[from:to])
}

type convert[T vec.Float] struct {
	e        *engine[T]
	dst, src view[T]
	n        int
}

func (e *engine[T]) runConvert(dst, src *tensor.Tensor) {
	j := &e.convert
	*j = convert[T]{e: e, dst: e.view(dst), src: e.view(src), n: dst.Len()}
	e.reserve(tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do converts one stretch.
func (j *convert[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		row := j.src.load(j.dst.room(j.e.scratch[worker], i, n), i, n)
		j.dst.store(row, i)
	}
}

type add[T vec.Float] struct {
	e        *engine[T]
	dst, src view[T]
	n        int
}

func (e *engine[T]) runAdd(dst, src *tensor.Tensor) {
	j := &e.add
	*j = add[T]{e: e, dst: e.view(dst), src: e.view(src), n: dst.Len()}
	e.reserve(2 * tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do adds one stretch.
func (j *add[T]) Do(worker, task int) {
	buf := j.e.buffers(worker, tile)
	from, to := span(task, chunk, j.n)
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		dst := j.dst.load(buf.at(0), i, n)
		j.e.vec.Add(dst, j.src.load(buf.at(1), i, n))
		j.dst.store(dst, i)
	}
}

type scale[T vec.Float] struct {
	e      *engine[T]
	t      view[T]
	factor T
	n      int
}

func (e *engine[T]) runScale(t *tensor.Tensor, factor float64) {
	j := &e.scale
	*j = scale[T]{e: e, t: e.view(t), factor: T(factor), n: t.Len()}
	e.reserve(tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do scales one stretch.
func (j *scale[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	for i := from; i < to; i += tile {
		row := j.t.load(j.e.scratch[worker], i, min(tile, to-i))
		j.e.vec.Scale(row, row, j.factor)
		j.t.store(row, i)
	}
}
