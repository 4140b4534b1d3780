package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Dropout implements device.Device.
func (d *Device) Dropout(dst, src *tensor.Tensor, o device.Dropout) {
	shape("Dropout", "src", src, dst.Rows(), dst.Cols())
	if reference(dst) || reference(src) {
		d.f64.runDropout(dst, src, o)
	} else {
		d.f32.runDropout(dst, src, o)
	}
}

type dropout[T vec.Float] struct {
	e          *engine[T]
	dst, src   view[T]
	rows, cols int
	perTask    int
	o          device.Dropout
	masks      []vec.Mask[T] // one per worker
}

func (e *engine[T]) runDropout(dst, src *tensor.Tensor, o device.Dropout) {
	j := &e.dropout
	*j = dropout[T]{e: e, dst: e.view(dst), src: e.view(src), rows: dst.Rows(), cols: dst.Cols(), o: o, masks: j.masks}
	e.reserve(3 * tile)
	if j.masks == nil {
		j.masks = make([]vec.Mask[T], e.pool.Threads())
	}
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, j.cols)
	e.pool.Run(tasks, j)
}

// Do masks some rows.
func (j *dropout[T]) Do(worker, task int) {
	buf := j.e.buffers(worker, tile)
	factors := buf.at(0)
	if j.o.Keep >= 1<<16 {
		for i := range factors {
			factors[i] = T(j.o.Scale)
		}
	}
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		for c := 0; c < j.cols; c += tile {
			n := min(tile, j.cols-c)
			if j.o.Keep < 1<<16 {
				j.mask(factors[:ceilDiv(n, 128)*128], &j.masks[worker], r, c)
			}
			j.apply(factors, buf.at(1), buf.at(2), r*j.cols+c, n)
		}
	}
}

// mask computes the factors of row r from column c on.
func (j *dropout[T]) mask(factors []T, m *vec.Mask[T], r, c int) {
	m.Keep, m.Scale = uint32(j.o.Keep), T(j.o.Scale)
	m.Counter, m.Key = j.o.RNG.Counter(uint64(j.o.Row+r)<<32 | uint64(j.o.Site)<<16 | uint64(c/8))
	j.e.vec.Mask(factors, m)
}

// apply multiplies elements [at, at+n).
func (j *dropout[T]) apply(factors, a, b []T, at, n int) {
	src := j.src.load(a, at, n)
	if j.o.Add {
		dst := j.dst.load(b, at, n)
		j.e.vec.MulAdd(dst, src, factors)
		j.dst.store(dst, at)
		return
	}
	dst := j.dst.room(b, at, n)
	j.e.vec.Mul(dst, src, factors)
	j.dst.store(dst, at)
}
