package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Dispatch implements device.Device. It counts and places the choices on one thread, because that is little work
// compared with the experts'.
func (d *Device) Dispatch(order, place, counts, experts *tensor.Tensor) {
	const op = "Dispatch"
	n := experts.Len()
	length(op, "order", order, n)
	length(op, "place", place, n)
	for _, t := range []struct {
		name string
		t    *tensor.Tensor
	}{{"order", order}, {"place", place}, {"counts", counts}} {
		dtype(op, t.name, t.t, tensor.I32)
	}
	checkIDs(op, "counts", counts.Len(), experts)
	count := counts.I32()
	clear(count)
	for _, e := range experts.I32() {
		count[e]++
	}
	// Places are given from the last choice to the first, so that count ends as the first place of each expert.
	last := int32(0)
	for e, c := range count {
		last += c
		count[e] = last
	}
	list := experts.I32()
	for c := n - 1; c >= 0; c-- {
		at := count[list[c]] - 1
		count[list[c]] = at
		order.I32()[at], place.I32()[c] = int32(c), at
	}
	for e := range count {
		next := int32(n)
		if e+1 < len(count) {
			next = count[e+1]
		}
		count[e] = next - count[e]
	}
}

// TakeRows implements device.Device.
func (d *Device) TakeRows(dst, src, order *tensor.Tensor, k int) {
	const op = "TakeRows"
	shape(op, "dst", dst, order.Len(), src.Cols())
	storage(op, "dst", dst, reference(src))
	storage(op, "src", src, reference(src))
	checkRows(op, "src", src.Rows()*k, order)
	if reference(src) {
		d.f64.runTakeRows(dst, src, order, k)
	} else {
		d.f32.runTakeRows(dst, src, order, k)
	}
}

type takeRows[T vec.Float] struct {
	e        *engine[T]
	dst, src view[T]
	order    []int32
	k        int
	perTask  int
}

func (e *engine[T]) runTakeRows(dst, src, order *tensor.Tensor, k int) {
	j := &e.takeRows
	*j = takeRows[T]{
		e: e, dst: e.view(dst), src: e.view(src), order: order.I32(), k: k,
	}
	e.reserve(src.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(len(j.order), src.Cols())
	e.pool.Run(tasks, j)
}

// Do copies the rows of one task.
func (j *takeRows[T]) Do(worker, task int) {
	cols := j.src.cols
	from, to := span(task, j.perTask, len(j.order))
	for i := from; i < to; i++ {
		if j.order[i] == device.Elsewhere {
			row := j.dst.room(j.e.scratch[worker], i*cols, cols)
			clear(row)
			j.dst.store(row, i*cols)
			continue
		}
		at := int(j.order[i]) / j.k * cols
		if j.dst.bf16 != nil && j.src.bf16 != nil {
			copy(j.dst.bf16[i*cols:][:cols], j.src.bf16[at:])
			continue
		}
		row := j.src.load(j.e.scratch[worker], at, cols)
		if j.dst.native != nil {
			copy(j.dst.native[i*cols:], row)
		} else {
			j.dst.store(row, i*cols)
		}
	}
}
