package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// QKNorm implements device.Device.
func (d *Device) QKNorm(qkv, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads, eps float64) {
	checkQKNorm("QKNorm", qkv, xhat, rstd, gainQ, gainK, heads)
	if reference(qkv) {
		d.f64.runQKNorm(qkv, xhat, rstd, gainQ, gainK, heads, eps)
	} else {
		d.f32.runQKNorm(qkv, xhat, rstd, gainQ, gainK, heads, eps)
	}
}

// QKNormGrad implements device.Device.
func (d *Device) QKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads) {
	const op = "QKNormGrad"
	checkQKNorm(op, dqkv, xhat, rstd, gainQ, gainK, heads)
	length(op, "dgainQ", dgainQ, heads.Size)
	length(op, "dgainK", dgainK, heads.Size)
	wide(op, "dgainQ", dgainQ, reference(dqkv))
	wide(op, "dgainK", dgainK, reference(dqkv))
	if reference(dqkv) {
		d.f64.runQKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK, heads)
	} else {
		d.f32.runQKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK, heads)
	}
}

func checkQKNorm(op string, qkv, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads) {
	rows, ref := qkv.Rows(), reference(qkv)
	shape(op, "qkv", qkv, rows, heads.Cols())
	shape(op, "xhat", xhat, rows, (heads.Q+heads.KV)*heads.Size)
	shape(op, "rstd", rstd, rows, heads.Q+heads.KV)
	length(op, "gainQ", gainQ, heads.Size)
	length(op, "gainK", gainK, heads.Size)
	storage(op, "qkv", qkv, ref)
	storage(op, "xhat", xhat, ref)
	wide(op, "rstd", rstd, ref)
	wide(op, "gainQ", gainQ, ref)
	wide(op, "gainK", gainK, ref)
}

type qkNorm[T vec.Float] struct {
	e                             *engine[T]
	qkv, xhat, rstd, gainQ, gainK view[T]
	heads                         device.Heads
	rows, perTask                 int
	eps                           float64
}

func (e *engine[T]) runQKNorm(qkv, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads, eps float64) {
	j := &e.qkNorm
	*j = qkNorm[T]{
		e: e, qkv: e.view(qkv), xhat: e.view(xhat), rstd: e.view(rstd), gainQ: e.view(gainQ), gainK: e.view(gainK),
		heads: heads, rows: qkv.Rows(), eps: eps,
	}
	e.reserve(2 * xhat.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, xhat.Cols())
	e.pool.Run(tasks, j)
}

// Do normalises the heads of the rows of one task.
func (j *qkNorm[T]) Do(worker, task int) {
	cols, size, n := j.xhat.cols, j.heads.Size, j.heads.Q+j.heads.KV
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		at := r * j.qkv.cols
		x := j.qkv.load(buf.at(0), at, cols)
		xhat := j.xhat.room(buf.at(1), r*cols, cols)
		for h := range n {
			head := x[h*size : (h+1)*size]
			rstd := j.e.rstd(head, j.eps)
			j.rstd.native[r*n+h] = rstd
			j.e.vec.Scale(xhat[h*size:(h+1)*size], head, rstd)
		}
		j.xhat.store(xhat, r*cols)
		xhat = j.xhat.load(buf.at(1), r*cols, cols)
		for h := range n {
			j.e.vec.Mul(x[h*size:(h+1)*size], xhat[h*size:], headGain(h, j.heads, &j.gainQ, &j.gainK))
		}
		j.qkv.store(x, at)
	}
}

// headGain returns the gain of head h: query heads come first.
func headGain[T vec.Float](h int, heads device.Heads, q, k *view[T]) []T {
	if h < heads.Q {
		return q.native
	}
	return k.native
}

type qkNormGrad[T vec.Float] struct {
	e                              *engine[T]
	dqkv, xhat, rstd, gainQ, gainK view[T]
	heads                          device.Heads
	dgain                          []T // per task, sums for gainQ and gainK
	rows, perTask                  int
}

func (e *engine[T]) runQKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads) {
	j := &e.qkNormGrad
	*j = qkNormGrad[T]{
		e: e, dqkv: e.view(dqkv), xhat: e.view(xhat), rstd: e.view(rstd), gainQ: e.view(gainQ), gainK: e.view(gainK),
		heads: heads, rows: dqkv.Rows(),
	}
	e.reserve(2*xhat.Cols() + heads.Size)
	var tasks int
	j.perTask, tasks = sumTasks(j.rows)
	j.dgain = e.partials(tasks, 2*heads.Size)
	e.pool.Run(tasks, j)
	q, k := e.view(dgainQ), e.view(dgainK)
	for t := range tasks {
		part := j.dgain[t*2*heads.Size:]
		e.vec.Add(q.native, part)
		e.vec.Add(k.native, part[heads.Size:])
	}
}

// Do turns the gradients of the rows of one task.
func (j *qkNormGrad[T]) Do(worker, task int) {
	cols, size, v := j.xhat.cols, j.heads.Size, &j.e.vec
	buf := j.e.buffers(worker, cols)
	dxhat := buf.mem[2*cols : 2*cols+size]
	dgainQ := j.dgain[task*2*size : task*2*size+size]
	dgainK := j.dgain[task*2*size+size : (task+1)*2*size]
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		at := r * j.dqkv.cols
		dqkv := j.dqkv.load(buf.at(0), at, cols)
		xhats := j.xhat.load(buf.at(1), r*cols, cols)
		for h := range j.heads.Q + j.heads.KV {
			dy, xhat := dqkv[h*size:(h+1)*size], xhats[h*size:(h+1)*size]
			dgain := dgainQ
			if h >= j.heads.Q {
				dgain = dgainK
			}
			v.MulAdd(dgain, dy, xhat)
			v.Mul(dxhat, dy, headGain(h, j.heads, &j.gainQ, &j.gainK))
			mean := v.Dot(dxhat, xhat) / T(size)
			v.Axpy(dxhat, xhat, -mean)
			v.Scale(dy, dxhat, j.rstd.native[r*(j.heads.Q+j.heads.KV)+h])
		}
		j.dqkv.store(dqkv, at)
	}
}
