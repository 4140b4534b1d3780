package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// MixRows implements device.Device.
func (d *Device) MixRows(dst, src, weights, place *tensor.Tensor, add bool) {
	const op = "MixRows"
	ref := reference(src)
	shape(op, "src", src, place.Len(), dst.Cols())
	storage(op, "dst", dst, ref)
	storage(op, "src", src, ref)
	checkIDs(op, "src", src.Rows(), place)
	if weights != nil {
		length(op, "weights", weights, place.Len())
		wide(op, "weights", weights, ref)
	}
	if ref {
		d.f64.runMixRows(dst, src, weights, place, add)
	} else {
		d.f32.runMixRows(dst, src, weights, place, add)
	}
}

type mixRows[T vec.Float] struct {
	e        *engine[T]
	dst, src view[T]
	weights  []T // nil for ones
	place    []int32
	k        int
	add      bool
	rows     int
	perTask  int
}

func (e *engine[T]) runMixRows(dst, src, weights, place *tensor.Tensor, add bool) {
	j := &e.mixRows
	*j = mixRows[T]{e: e, dst: e.view(dst), src: e.view(src), place: place.I32(), add: add, rows: dst.Rows()}
	j.k = len(j.place) / max(1, j.rows)
	if weights != nil {
		w := e.view(weights)
		j.weights = w.native
	}
	e.reserve(3 * dst.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, dst.Cols()*j.k)
	e.pool.Run(tasks, j)
}

// Do computes the rows of one task.
func (j *mixRows[T]) Do(worker, task int) {
	cols := j.dst.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		sum := buf.at(0)
		clear(sum)
		for c := r * j.k; c < (r+1)*j.k; c++ {
			row := j.src.load(buf.at(1), int(j.place[c])*cols, cols)
			if j.weights != nil {
				j.e.vec.Axpy(sum, row, j.weights[c])
			} else {
				j.e.vec.Add(sum, row)
			}
		}
		if j.add {
			j.e.vec.Add(sum, j.dst.load(buf.at(2), r*cols, cols))
		}
		copy(j.dst.room(sum, r*cols, cols), sum)
		j.dst.store(sum, r*cols)
	}
}

// WeighRows implements device.Device.
func (d *Device) WeighRows(dweights, dx, x, weights, order *tensor.Tensor) {
	const op = "WeighRows"
	ref := reference(x)
	shape(op, "dx", dx, order.Len(), x.Cols())
	shape(op, "x", x, order.Len(), x.Cols())
	storage(op, "dx", dx, ref)
	storage(op, "x", x, ref)
	length(op, "weights", weights, order.Len())
	length(op, "dweights", dweights, order.Len())
	wide(op, "weights", weights, ref)
	wide(op, "dweights", dweights, ref)
	checkIDs(op, "weights", order.Len(), order)
	if ref {
		d.f64.runWeighRows(dweights, dx, x, weights, order)
	} else {
		d.f32.runWeighRows(dweights, dx, x, weights, order)
	}
}

type weighRows[T vec.Float] struct {
	e                 *engine[T]
	dx, x             view[T]
	weights, dweights []T
	order             []int32
	perTask           int
}

func (e *engine[T]) runWeighRows(dweights, dx, x, weights, order *tensor.Tensor) {
	j := &e.weighRows
	*j = weighRows[T]{e: e, dx: e.view(dx), x: e.view(x), order: order.I32()}
	w, dw := e.view(weights), e.view(dweights)
	j.weights, j.dweights = w.native, dw.native
	e.reserve(2 * x.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(len(j.order), x.Cols())
	e.pool.Run(tasks, j)
}

// Do weighs the rows of one task.
func (j *weighRows[T]) Do(worker, task int) {
	cols := j.x.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, len(j.order))
	for i := from; i < to; i++ {
		c := j.order[i]
		dx, x := j.dx.load(buf.at(0), i*cols, cols), j.x.load(buf.at(1), i*cols, cols)
		j.dweights[c] = j.e.vec.Dot(dx, x)
		j.e.vec.Scale(dx, dx, j.weights[c])
		j.e.vec.Scale(x, x, j.weights[c])
		j.dx.store(dx, i*cols)
		j.x.store(x, i*cols)
	}
}
