package cpu

import (
	"math"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// LayerNorm implements device.Device.
func (d *Device) LayerNorm(y, xhat, rstd, x, gain, bias *tensor.Tensor, eps float64) {
	const op = "LayerNorm"
	rows, cols, ref := x.Rows(), x.Cols(), reference(x)
	shape(op, "y", y, rows, cols)
	shape(op, "xhat", xhat, rows, cols)
	length(op, "rstd", rstd, rows)
	length(op, "gain", gain, cols)
	length(op, "bias", bias, cols)
	wide(op, "x", x, ref)
	wide(op, "rstd", rstd, ref)
	wide(op, "gain", gain, ref)
	wide(op, "bias", bias, ref)
	storage(op, "y", y, ref)
	storage(op, "xhat", xhat, ref)
	if ref {
		d.f64.runLayerNorm(y, xhat, rstd, x, gain, bias, eps)
	} else {
		d.f32.runLayerNorm(y, xhat, rstd, x, gain, bias, eps)
	}
}

// LayerNormAgain implements device.Device.
func (d *Device) LayerNormAgain(y, xhat, gain, bias *tensor.Tensor) {
	const op = "LayerNormAgain"
	ref := reference(xhat)
	shape(op, "y", y, xhat.Rows(), xhat.Cols())
	length(op, "gain", gain, xhat.Cols())
	length(op, "bias", bias, xhat.Cols())
	storage(op, "y", y, ref)
	storage(op, "xhat", xhat, ref)
	wide(op, "gain", gain, ref)
	wide(op, "bias", bias, ref)
	if ref {
		d.f64.runLayerNormAgain(y, xhat, gain, bias)
	} else {
		d.f32.runLayerNormAgain(y, xhat, gain, bias)
	}
}

// LayerNormGrad implements device.Device.
func (d *Device) LayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain *tensor.Tensor) {
	const op = "LayerNormGrad"
	rows, cols, ref := dx.Rows(), dx.Cols(), reference(dx)
	shape(op, "dy", dy, rows, cols)
	shape(op, "xhat", xhat, rows, cols)
	length(op, "rstd", rstd, rows)
	length(op, "gain", gain, cols)
	length(op, "dgain", dgain, cols)
	length(op, "dbias", dbias, cols)
	wide(op, "dx", dx, ref)
	wide(op, "dgain", dgain, ref)
	wide(op, "dbias", dbias, ref)
	wide(op, "rstd", rstd, ref)
	wide(op, "gain", gain, ref)
	storage(op, "dy", dy, ref)
	storage(op, "xhat", xhat, ref)
	if ref {
		d.f64.runLayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain)
	} else {
		d.f32.runLayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain)
	}
}

type layerNorm[T vec.Float] struct {
	e                            *engine[T]
	y, xhat, rstd, x, gain, bias view[T]
	narrow                       *vec.Narrow[T]
	rows, perTask                int
	eps                          float64
}

func (e *engine[T]) runLayerNorm(y, xhat, rstd, x, gain, bias *tensor.Tensor, eps float64) {
	j := &e.layerNorm
	*j = layerNorm[T]{
		e: e, y: e.view(y), xhat: e.view(xhat), rstd: e.view(rstd), x: e.view(x), gain: e.view(gain),
		bias: e.view(bias), rows: x.Rows(), eps: eps,
	}
	j.narrow = e.narrow(x.Cols(), &j.y, &j.xhat)
	e.reserve(2 * x.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, x.Cols())
	e.pool.Run(tasks, j)
}

// Do normalises the rows of one task.
func (j *layerNorm[T]) Do(worker, task int) {
	cols, v := j.x.cols, &j.e.vec
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		at := r * cols
		x := j.x.native[at : at+cols]
		mean, rstd := j.e.moments(x, j.eps)
		j.rstd.native[r] = rstd
		if j.narrow != nil {
			j.narrow.LayerNorm(j.y.bf16[at:at+cols], j.xhat.bf16[at:], x, j.gain.native, j.bias.native, mean, rstd)
			continue
		}
		xhat := j.xhat.room(buf.at(0), at, cols)
		v.Centre(xhat, x, mean, rstd)
		j.xhat.store(xhat, at)
		xhat = j.xhat.load(buf.at(0), at, cols)
		y := j.y.room(buf.at(1), at, cols)
		v.Mul(y, xhat, j.gain.native)
		v.Add(y, j.bias.native)
		j.y.store(y, at)
	}
}

// moments returns the mean of x and 1/sqrt(variance + eps). It sums in float64, to keep the variance of numbers far
// from 0 accurate.
func (e *engine[T]) moments(x []T, eps float64) (mean, rstd T) {
	n := float64(len(x))
	m := e.vec.Sum(x) / n
	variance := max(e.vec.SumSq(x)/n-m*m, 0)
	return T(m), T(1 / math.Sqrt(variance+eps))
}

type layerNormAgain[T vec.Float] struct {
	e                   *engine[T]
	y, xhat, gain, bias view[T]
	narrow              *vec.Narrow[T]
	rows, perTask       int
}

func (e *engine[T]) runLayerNormAgain(y, xhat, gain, bias *tensor.Tensor) {
	j := &e.layerNormAgain
	*j = layerNormAgain[T]{
		e: e, y: e.view(y), xhat: e.view(xhat), gain: e.view(gain), bias: e.view(bias), rows: xhat.Rows(),
	}
	j.narrow = e.narrow(xhat.Cols(), &j.y, &j.xhat)
	e.reserve(2 * xhat.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, xhat.Cols())
	e.pool.Run(tasks, j)
}

// Do applies gain and bias to the rows of one task.
func (j *layerNormAgain[T]) Do(worker, task int) {
	cols := j.xhat.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		at := r * cols
		if j.narrow != nil {
			j.narrow.LayerNormAgain(j.y.bf16[at:at+cols], j.xhat.bf16[at:], j.gain.native, j.bias.native)
			continue
		}
		xhat := j.xhat.load(buf.at(0), at, cols)
		y := j.y.room(buf.at(1), at, cols)
		j.e.vec.Mul(y, xhat, j.gain.native)
		j.e.vec.Add(y, j.bias.native)
		j.y.store(y, at)
	}
}

type layerNormGrad[T vec.Float] struct {
	e                        *engine[T]
	dx, dy, xhat, rstd, gain view[T]
	sums                     []T // per task, a row for the gain and one for the bias
	narrow                   *vec.Narrow[T]
	rows, perTask            int
}

func (e *engine[T]) runLayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain *tensor.Tensor) {
	j := &e.layerNormGrad
	*j = layerNormGrad[T]{
		e: e, dx: e.view(dx), dy: e.view(dy), xhat: e.view(xhat), rstd: e.view(rstd), gain: e.view(gain),
		rows: dx.Rows(),
	}
	cols := dx.Cols()
	j.narrow = e.narrow(cols, &j.dy, &j.xhat)
	e.reserve(max(3*cols, 2))
	var tasks int
	j.perTask, tasks = sumTasks(j.rows)
	j.sums = e.partials(tasks, 2*cols)
	e.pool.Run(tasks, j)
	g, b := e.view(dgain), e.view(dbias)
	for t := range tasks {
		part := j.sums[t*2*cols:]
		e.vec.Add(g.native, part)
		e.vec.Add(b.native, part[cols:])
	}
}

// Do adds the gradients of the rows of one task.
func (j *layerNormGrad[T]) Do(worker, task int) {
	cols, v := j.dx.cols, &j.e.vec
	buf := j.e.buffers(worker, cols)
	dgain, dbias := j.sums[task*2*cols:][:cols], j.sums[(task*2+1)*cols:][:cols]
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		at := r * cols
		dx, rstd := j.dx.native[at:at+cols], j.rstd.native[r]
		if j.narrow != nil {
			dy, xhat, sums := j.dy.bf16[at:], j.xhat.bf16[at:], (*[2]T)(buf.mem)
			j.narrow.LayerNormDot(dgain, dbias, dy, xhat, j.gain.native, sums)
			j.narrow.LayerNormGrad(dx, dy, xhat, j.gain.native, rstd, sums[0]/T(cols), sums[1]/T(cols))
			continue
		}
		dy := j.dy.load(buf.at(0), at, cols)
		xhat := j.xhat.load(buf.at(1), at, cols)
		v.MulAdd(dgain, dy, xhat)
		v.Add(dbias, dy)
		dxhat := buf.at(2)
		v.Mul(dxhat, dy, j.gain.native)
		mean, dot := T(v.Sum(dxhat))/T(cols), v.Dot(dxhat, xhat)/T(cols)
		v.Axpy(dxhat, xhat, -dot)
		v.Centre(dxhat, dxhat, mean, 1)
		v.Axpy(dx, dxhat, rstd)
	}
}
