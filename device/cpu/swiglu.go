package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// SwiGLU implements device.Device.
func (d *Device) SwiGLU(act, gu *tensor.Tensor) {
	const op = "SwiGLU"
	shape(op, "gu", gu, act.Rows(), 2*act.Cols())
	storage(op, "act", act, reference(act))
	storage(op, "gu", gu, reference(act))
	if reference(act) {
		d.f64.runSwiGLU(act, gu)
	} else {
		d.f32.runSwiGLU(act, gu)
	}
}

// SwiGLUGrad implements device.Device.
func (d *Device) SwiGLUGrad(dgu, act, dact, gu *tensor.Tensor) {
	const op = "SwiGLUGrad"
	shape(op, "gu", gu, dact.Rows(), 2*dact.Cols())
	shape(op, "dgu", dgu, dact.Rows(), 2*dact.Cols())
	storage(op, "dgu", dgu, reference(dact))
	storage(op, "dact", dact, reference(dact))
	storage(op, "gu", gu, reference(dact))
	if act != nil {
		shape(op, "act", act, dact.Rows(), dact.Cols())
		storage(op, "act", act, reference(dact))
	}
	if reference(dact) {
		d.f64.runSwiGLUGrad(dgu, act, dact, gu)
	} else {
		d.f32.runSwiGLUGrad(dgu, act, dact, gu)
	}
}

type swiGLU[T vec.Float] struct {
	e             *engine[T]
	act, gu       view[T]
	narrow        *vec.Narrow[T]
	rows, perTask int
}

func (e *engine[T]) runSwiGLU(act, gu *tensor.Tensor) {
	j := &e.swiGLU
	*j = swiGLU[T]{e: e, act: e.view(act), gu: e.view(gu), rows: act.Rows()}
	j.narrow = e.narrow(act.Cols(), &j.act, &j.gu)
	e.reserve(3 * tile)
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, act.Cols())
	e.pool.Run(tasks, j)
}

// Do computes the rows of one task, a tile of columns at a time.
func (j *swiGLU[T]) Do(worker, task int) {
	cols := j.act.cols
	buf := j.e.buffers(worker, tile)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		if j.narrow != nil {
			gu := j.gu.bf16[2*r*cols:]
			j.narrow.SwiGLU(j.act.bf16[r*cols:(r+1)*cols], gu, gu[cols:])
			continue
		}
		for c := 0; c < cols; c += tile {
			n := min(tile, cols-c)
			gate := j.gu.load(buf.at(0), 2*r*cols+c, n)
			up := j.gu.load(buf.at(1), (2*r+1)*cols+c, n)
			act := j.act.room(buf.at(2), r*cols+c, n)
			j.e.vec.SwiGLU(act, gate, up)
			j.act.store(act, r*cols+c)
		}
	}
}

type swiGLUGrad[T vec.Float] struct {
	e                  *engine[T]
	dgu, act, dact, gu view[T]
	again              bool // act is computed too
	narrow             *vec.Narrow[T]
	rows, perTask      int
}

func (e *engine[T]) runSwiGLUGrad(dgu, act, dact, gu *tensor.Tensor) {
	j := &e.swiGLUGrad
	*j = swiGLUGrad[T]{e: e, dgu: e.view(dgu), dact: e.view(dact), gu: e.view(gu), again: act != nil, rows: dact.Rows()}
	j.act = j.dgu
	if j.again {
		j.act = e.view(act)
	}
	j.narrow = e.narrow(dact.Cols(), &j.dgu, &j.act, &j.dact, &j.gu)
	e.reserve(6 * tile)
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, dact.Cols())
	e.pool.Run(tasks, j)
}

// Do computes the gradients of the rows of one task, a tile of columns at a time.
func (j *swiGLUGrad[T]) Do(worker, task int) {
	cols := j.dact.cols
	buf := j.e.buffers(worker, tile)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		if j.narrow != nil {
			gu, dgu := j.gu.bf16[2*r*cols:], j.dgu.bf16[2*r*cols:]
			act := dgu // dgu is written last
			if j.again {
				act = j.act.bf16[r*cols:]
			}
			j.narrow.SwiGLUGrad(dgu[:cols], dgu[cols:], act, j.dact.bf16[r*cols:], gu, gu[cols:])
			continue
		}
		for c := 0; c < cols; c += tile {
			n := min(tile, cols-c)
			g, u := 2*r*cols+c, (2*r+1)*cols+c
			dact := j.dact.load(buf.at(0), r*cols+c, n)
			gate := j.gu.load(buf.at(1), g, n)
			up := j.gu.load(buf.at(2), u, n)
			dgate, dup := j.dgu.room(buf.at(3), g, n), j.dgu.room(buf.at(4), u, n)
			act := dgate
			if j.again {
				act = j.act.room(buf.at(5), r*cols+c, n)
			}
			j.e.vec.SwiGLUGrad(dgate, dup, act, dact, gate, up)
			j.dgu.store(dgate, g)
			j.dgu.store(dup, u)
			if j.again {
				j.act.store(act, r*cols+c)
			}
		}
	}
}
