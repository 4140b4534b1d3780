package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// SquareSums implements device.Device.
func (d *Device) SquareSums(sums []float64, list ...*tensor.Tensor) {
	for _, t := range list {
		n := device.Stretches(t)
		if reference(t) {
			d.f64.runReduce(t, d.f64.vec.SumSq, sums[:n])
		} else {
			d.f32.runReduce(t, d.f32.vec.SumSq, sums[:n])
		}
		sums = sums[n:]
	}
}

// Sum implements device.Device.
func (d *Device) Sum(t *tensor.Tensor) float64 {
	var sums []float64
	if n := device.Stretches(t); reference(t) {
		sums = d.f64.taskSums(n)
		d.f64.runReduce(t, d.f64.vec.Sum, sums)
	} else {
		sums = d.f32.taskSums(n)
		d.f32.runReduce(t, d.f32.vec.Sum, sums)
	}
	total := 0.0
	for _, s := range sums {
		total += s
	}
	return total
}

type reduce[T vec.Float] struct {
	e    *engine[T]
	t    view[T]
	n    int
	sum  func([]T) float64
	sums []float64 // one per stretch
}

// runReduce writes the sum of each stretch of t.
func (e *engine[T]) runReduce(t *tensor.Tensor, sum func([]T) float64, sums []float64) {
	j := &e.reduce
	*j = reduce[T]{e: e, t: e.view(t), n: t.Len(), sum: sum, sums: sums}
	e.reserve(tile)
	e.pool.Run(len(sums), j)
}

// Do sums one stretch, a tile at a time.
func (j *reduce[T]) Do(worker, task int) {
	from, to := span(task, device.Stretch, j.n)
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
