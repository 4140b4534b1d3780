package cpu

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Descend implements device.Device.
func (d *Device) Descend(p, u *tensor.Tensor, o device.Descent) {
	const op = "Descend"
	ref := reference(p)
	length(op, "u", u, p.Len())
	wide(op, "p", p, ref)
	wide(op, "u", u, ref)
	if ref {
		d.f64.runDescend(p, u, o)
	} else {
		d.f32.runDescend(p, u, o)
	}
}

type descend[T vec.Float] struct {
	vec                *vec.Table[T]
	p, u               []T
	rate, decay, floor T
}

func (e *engine[T]) runDescend(p, u *tensor.Tensor, o device.Descent) {
	j := &e.descend
	*j = descend[T]{vec: &e.vec, p: e.view(p).native, u: e.view(u).native, rate: T(o.Rate), decay: T(o.Decay), floor: floor[T](o.Cautious)}
	e.pool.Run(ceilDiv(len(j.p), chunk), j)
}

// Do updates one stretch of the parameter.
func (j *descend[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.p))
	j.vec.Descend(j.p[from:to], j.u[from:to], j.rate, j.decay, j.floor)
}

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
