package cpu

import (
	"math"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// EqualiseRows implements device.Device.
func (d *Device) EqualiseRows(u, v *tensor.Tensor, beta float64) {
	const op = "EqualiseRows"
	ref := reference(u)
	length(op, "v", v, u.Rows())
	wide(op, "u", u, ref)
	wide(op, "v", v, ref)
	if ref {
		d.f64.runEqualise(u, v, beta)
	} else {
		d.f32.runEqualise(u, v, beta)
	}
}

type equalise[T vec.Float] struct {
	vec           *vec.Table[T]
	u, v          []T
	cols, perTask int
	beta          float64
}

func (e *engine[T]) runEqualise(u, v *tensor.Tensor, beta float64) {
	j := &e.equalise
	*j = equalise[T]{vec: &e.vec, u: e.view(u).native, v: e.view(v).native, cols: u.Cols(), beta: beta}
	var tasks int
	j.perTask, tasks = rowTasks(len(j.v), j.cols)
	e.pool.Run(tasks, j)
}

// Do divides one task's rows.
func (j *equalise[T]) Do(_, task int) {
	from, to := span(task, j.perTask, len(j.v))
	for r := from; r < to; r++ {
		row := j.u[r*j.cols:][:j.cols]
		v := j.beta*float64(j.v[r]) + (1-j.beta)*j.vec.SumSq(row)/float64(j.cols)
		j.v[r] = T(v)
		j.vec.Scale(row, row, T(1/(math.Sqrt(v)+1e-10)))
	}
}
