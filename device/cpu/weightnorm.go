package cpu

import (
	"math"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// WeightNorm implements device.Device.
func (d *Device) WeightNorm(v, gain *tensor.Tensor) {
	checkWeightNorm("WeightNorm", v, gain)
	if reference(v) {
		d.f64.runWeightNorm(v, gain)
	} else {
		d.f32.runWeightNorm(v, gain)
	}
}

// WeightNormGrad implements device.Device.
func (d *Device) WeightNormGrad(dv, dgain, v, gain *tensor.Tensor) {
	const op = "WeightNormGrad"
	checkWeightNorm(op, v, gain)
	checkWeightNorm(op, dv, dgain)
	shape(op, "dv", dv, v.Rows(), v.Cols())
	if reference(v) {
		d.f64.runWeightNormGrad(dv, dgain, v, gain)
	} else {
		d.f32.runWeightNormGrad(dv, dgain, v, gain)
	}
}

func checkWeightNorm(op string, v, gain *tensor.Tensor) {
	storage(op, "v", v, reference(v))
	length(op, "gain", gain, v.Rows())
	wide(op, "gain", gain, reference(v))
}

// norm returns the Euclidean norm of a row, summed in float64 so that it does not depend on the width of a tier.
func norm[T vec.Float](row []T) T {
	sum := 0.0
	for _, x := range row {
		sum += float64(x) * float64(x)
	}
	return T(math.Sqrt(sum))
}

// rescale returns gain/norm, or 1 for a row of zeros.
func rescale[T vec.Float](gain, norm T) T {
	if norm == 0 {
		return 1
	}
	return gain / norm
}

type weightNorm[T vec.Float] struct {
	e             *engine[T]
	v             view[T]
	gain          []T
	rows, perTask int
}

func (e *engine[T]) runWeightNorm(v, gain *tensor.Tensor) {
	j := &e.weightNorm
	*j = weightNorm[T]{e: e, v: e.view(v), gain: e.view(gain).native, rows: v.Rows()}
	e.reserve(v.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, v.Cols())
	e.pool.Run(tasks, j)
}

// Do scales each row of one task to its norm in gain.
func (j *weightNorm[T]) Do(worker, task int) {
	cols := j.v.cols
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		row := j.v.load(j.e.buffers(worker, cols).at(0), r*cols, cols)
		j.e.vec.Scale(row, row, rescale(j.gain[r], norm(row)))
		j.v.store(row, r*cols)
	}
}

type weightNormGrad[T vec.Float] struct {
	e             *engine[T]
	dv, v         view[T]
	dgain, gain   []T
	rows, perTask int
}

func (e *engine[T]) runWeightNormGrad(dv, dgain, v, gain *tensor.Tensor) {
	j := &e.weightNormGrad
	*j = weightNormGrad[T]{
		e: e, dv: e.view(dv), v: e.view(v), dgain: e.view(dgain).native, gain: e.view(gain).native, rows: v.Rows(),
	}
	e.reserve(2 * v.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, v.Cols())
	e.pool.Run(tasks, j)
}

// Do computes the gradients of one task's rows.
func (j *weightNormGrad[T]) Do(worker, task int) {
	cols := j.v.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		dv, v := j.dv.load(buf.at(0), r*cols, cols), j.v.load(buf.at(1), r*cols, cols)
		n := norm(v)
		if n > 0 {
			j.dgain[r] += j.e.vec.Dot(dv, v) / n
		}
		j.e.vec.Scale(dv, dv, rescale(j.gain[r], n))
		j.dv.store(dv, r*cols)
	}
}
