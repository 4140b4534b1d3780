package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// SumSquares implements device.Device.
func (d *Device) SumSquares(list ...*tensor.Tensor) float64 {
	total := 0.0
	for _, t := range list {
		if reference(t) {
			total += d.f64.runReduce(t, d.f64.vec.SumSq)
		} else {
			total += d.f32.runReduce(t, d.f32.vec.SumSq)
		}
	}
	return total
}

// Sum implements device.Device.
func (d *Device) Sum(t *tensor.Tensor) float64 {
	if reference(t) {
		return d.f64.runReduce(t, d.f64.vec.Sum)
	}
	return d.f32.runReduce(t, d.f32.vec.Sum)
}

type reduce[T vec.Float] struct {
	e    *engine[T]
	t    view[T]
	n    int
	sum  func([]T) float64
	sums []float64 // one per task
}

// runReduce sums fixed stretches of t and adds their sums in order.
func (e *engine[T]) runReduce(t *tensor.Tensor, sum func([]T) float64) float64 {
	j := &e.reduce
	tasks := ceilDiv(t.Len(), chunk)
	*j = reduce[T]{e: e, t: e.view(t), n: t.Len(), sum: sum, sums: e.taskSums(tasks)}
	e.reserve(tile)
	e.pool.Run(tasks, j)
	total := 0.0
	for _, s := range j.sums {
		total += s
	}
	return total
}

// Do sums one stretch, a tile at a time.
func (j *reduce[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	s := 0.0
	for i := from; i < to; i += tile {
		s += j.sum(j.t.load(j.e.scratch[worker], i, min(tile, to-i)))
	}
	j.sums[task] = s
}

// taskSums returns memory for one sum per task.
func (e *engine[T]) taskSums(tasks int) []float64 {
	if len(e.sums) < tasks {
		e.sums = make([]float64, tasks)
	}
	return e.sums[:tasks]
}
