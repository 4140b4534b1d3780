package cpu

import (
	"math"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// RMSNorm implements device.Device.
func (d *Device) RMSNorm(y, xhat, rstd, x, gain *tensor.Tensor, eps float64) {
	const op = "RMSNorm"
	rows, cols, ref := x.Rows(), x.Cols(), reference(x)
	shape(op, "y", y, rows, cols)
	shape(op, "xhat", xhat, rows, cols)
	length(op, "rstd", rstd, rows)
	length(op, "gain", gain, cols)
	wide(op, "x", x, ref)
	wide(op, "rstd", rstd, ref)
	wide(op, "gain", gain, ref)
	storage(op, "y", y, ref)
	storage(op, "xhat", xhat, ref)
	if ref {
		d.f64.runRMSNorm(y, xhat, rstd, x, gain, eps)
	} else {
		d.f32.runRMSNorm(y, xhat, rstd, x, gain, eps)
	}
}

// RMSNormAgain implements device.Device.
func (d *Device) RMSNormAgain(y, xhat, gain *tensor.Tensor) {
	const op = "RMSNormAgain"
	ref := reference(xhat)
	shape(op, "y", y, xhat.Rows(), xhat.Cols())
	length(op, "gain", gain, xhat.Cols())
	storage(op, "y", y, ref)
	storage(op, "xhat", xhat, ref)
	wide(op, "gain", gain, ref)
	if ref {
		d.f64.runRMSNormAgain(y, xhat, gain)
	} else {
		d.f32.runRMSNormAgain(y, xhat, gain)
	}
}

// RMSNormGrad implements device.Device.
func (d *Device) RMSNormGrad(dx, dgain, dy, xhat, rstd, gain *tensor.Tensor) {
	const op = "RMSNormGrad"
	rows, cols, ref := dx.Rows(), dx.Cols(), reference(dx)
	shape(op, "dy", dy, rows, cols)
	shape(op, "xhat", xhat, rows, cols)
	length(op, "rstd", rstd, rows)
	length(op, "gain", gain, cols)
	length(op, "dgain", dgain, cols)
	wide(op, "dx", dx, ref)
	wide(op, "dgain", dgain, ref)
	wide(op, "rstd", rstd, ref)
	wide(op, "gain", gain, ref)
	storage(op, "dy", dy, ref)
	storage(op, "xhat", xhat, ref)
	if ref {
		d.f64.runRMSNormGrad(dx, dgain, dy, xhat, rstd, gain)
	} else {
		d.f32.runRMSNormGrad(dx, dgain, dy, xhat, rstd, gain)
	}
}

type rmsNorm[T vec.Float] struct {
	e                      *engine[T]
	y, xhat, rstd, x, gain view[T]
	narrow                 *vec.Narrow[T]
	rows, perTask          int
	eps                    float64
}

func (e *engine[T]) runRMSNorm(y, xhat, rstd, x, gain *tensor.Tensor, eps float64) {
	j := &e.rmsNorm
	*j = rmsNorm[T]{
		e: e, y: e.view(y), xhat: e.view(xhat), rstd: e.view(rstd), x: e.view(x), gain: e.view(gain),
		rows: x.Rows(), eps: eps,
	}
	j.narrow = e.narrow(x.Cols(), &j.y, &j.xhat)
	e.reserve(2 * x.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, x.Cols())
	e.pool.Run(tasks, j)
}

// Do normalises the rows of one task.
func (j *rmsNorm[T]) Do(worker, task int) {
	cols := j.x.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		at := r * cols
		x := j.x.native[at : at+cols]
		rstd := j.e.rstd(x, j.eps)
		j.rstd.native[r] = rstd
		if j.narrow != nil {
			j.narrow.Normalise(j.y.bf16[at:at+cols], j.xhat.bf16[at:], x, j.gain.native, rstd)
			continue
		}
		xhat := j.xhat.room(buf.at(0), at, cols)
		j.e.vec.Scale(xhat, x, rstd)
		j.xhat.store(xhat, at)
		xhat = j.xhat.load(buf.at(0), at, cols)
		y := j.y.room(buf.at(1), at, cols)
		j.e.vec.Mul(y, xhat, j.gain.native)
		j.y.store(y, at)
	}
}

// rstd returns 1/sqrt(mean(x²) + eps).
func (e *engine[T]) rstd(x []T, eps float64) T {
	return T(1 / math.Sqrt(float64(e.vec.Dot(x, x))/float64(len(x))+eps))
}

type rmsNormAgain[T vec.Float] struct {
	e             *engine[T]
	y, xhat, gain view[T]
	narrow        *vec.Narrow[T]
	rows, perTask int
}

func (e *engine[T]) runRMSNormAgain(y, xhat, gain *tensor.Tensor) {
	j := &e.rmsNormAgain
	*j = rmsNormAgain[T]{e: e, y: e.view(y), xhat: e.view(xhat), gain: e.view(gain), rows: xhat.Rows()}
	j.narrow = e.narrow(xhat.Cols(), &j.y, &j.xhat)
	e.reserve(2 * xhat.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, xhat.Cols())
	e.pool.Run(tasks, j)
}

// Do multiplies the rows of one task by the gain.
func (j *rmsNormAgain[T]) Do(worker, task int) {
	cols := j.xhat.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		at := r * cols
		if j.narrow != nil {
			j.narrow.Mul(j.y.bf16[at:at+cols], j.xhat.bf16[at:], j.gain.native)
			continue
		}
		xhat := j.xhat.load(buf.at(0), at, cols)
		y := j.y.room(buf.at(1), at, cols)
		j.e.vec.Mul(y, xhat, j.gain.native)
		j.y.store(y, at)
	}
}

type rmsNormGrad[T vec.Float] struct {
	e                        *engine[T]
	dx, dy, xhat, rstd, gain view[T]
	dgain                    []T // one row of sums per task
	narrow                   *vec.Narrow[T]
	rows, perTask            int
}

func (e *engine[T]) runRMSNormGrad(dx, dgain, dy, xhat, rstd, gain *tensor.Tensor) {
	j := &e.rmsNormGrad
	*j = rmsNormGrad[T]{
		e: e, dx: e.view(dx), dy: e.view(dy), xhat: e.view(xhat), rstd: e.view(rstd), gain: e.view(gain),
		rows: dx.Rows(),
	}
	cols := dx.Cols()
	j.narrow = e.narrow(cols, &j.dy, &j.xhat)
	e.reserve(3 * cols)
	var tasks int
	j.perTask, tasks = sumTasks(j.rows)
	j.dgain = e.partials(tasks, cols)
	e.pool.Run(tasks, j)
	sum := e.view(dgain)
	for t := range tasks {
		e.vec.Add(sum.native, j.dgain[t*cols:(t+1)*cols])
	}
}

// Do adds the gradients of the rows of one task.
func (j *rmsNormGrad[T]) Do(worker, task int) {
	cols, v := j.dx.cols, &j.e.vec
	buf := j.e.buffers(worker, cols)
	dgain := j.dgain[task*cols : (task+1)*cols]
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		at := r * cols
		dx, rstd := j.dx.native[at:at+cols], j.rstd.native[r]
		if j.narrow != nil {
			dy, xhat := j.dy.bf16[at:], j.xhat.bf16[at:]
			mean := j.narrow.NormDot(dgain, dy, xhat, j.gain.native) / T(cols)
			j.narrow.NormGrad(dx, dy, xhat, j.gain.native, rstd, mean)
			continue
		}
		dy := j.dy.load(buf.at(0), at, cols)
		xhat := j.xhat.load(buf.at(1), at, cols)
		v.MulAdd(dgain, dy, xhat)
		dxhat := buf.at(2)
		v.Mul(dxhat, dy, j.gain.native)
		mean := v.Dot(dxhat, xhat) / T(cols)
		v.Axpy(dxhat, xhat, -mean)
		v.Axpy(dx, dxhat, rstd)
	}
}
