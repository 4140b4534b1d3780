package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Activations of a gate and an up projection share this code; swiglu.go and geglu.go provide the functions.

func checkGated(op string, act, gu *tensor.Tensor) {
	shape(op, "gu", gu, act.Rows(), 2*act.Cols())
	storage(op, "act", act, reference(act))
	storage(op, "gu", gu, reference(act))
}

func checkGatedGrad(op string, dgu, act, dact, gu *tensor.Tensor) {
	shape(op, "gu", gu, dact.Rows(), 2*dact.Cols())
	shape(op, "dgu", dgu, dact.Rows(), 2*dact.Cols())
	storage(op, "dgu", dgu, reference(dact))
	storage(op, "dact", dact, reference(dact))
	storage(op, "gu", gu, reference(dact))
	if act != nil {
		shape(op, "act", act, dact.Rows(), dact.Cols())
		storage(op, "act", act, reference(dact))
	}
}

// A gate is a function of gate and up and its gradient, in one arithmetic and, if the tier has it, in one pass over
// bfloat16.
type gate[T vec.Float] struct {
	f          func(act, gate, up []T)
	grad       func(dgate, dup, act, dact, gate, up []T)
	narrow     func(act, gate, up []tensor.BFloat16)
	narrowGrad func(dgate, dup, act, dact, gate, up []tensor.BFloat16)
}

type gated[T vec.Float] struct {
	e             *engine[T]
	act, gu       view[T]
	by            gate[T]
	narrow        bool
	rows, perTask int
}

// gate computes act = f(gate, up).
func (e *engine[T]) gate(act, gu *tensor.Tensor, by gate[T]) {
	j := &e.gated
	*j = gated[T]{e: e, act: e.view(act), gu: e.view(gu), by: by, rows: act.Rows()}
	j.narrow = e.narrow(act.Cols(), &j.act, &j.gu) != nil
	e.reserve(3 * tile)
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, act.Cols())
	e.pool.Run(tasks, j)
}

// Do computes the rows of one task, a tile of columns at a time.
func (j *gated[T]) Do(worker, task int) {
	cols := j.act.cols
	buf := j.e.buffers(worker, tile)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		if j.narrow {
			gu := j.gu.bf16[2*r*cols:]
			j.by.narrow(j.act.bf16[r*cols:(r+1)*cols], gu, gu[cols:])
			continue
		}
		for c := 0; c < cols; c += tile {
			n := min(tile, cols-c)
			gate := j.gu.load(buf.at(0), 2*r*cols+c, n)
			up := j.gu.load(buf.at(1), (2*r+1)*cols+c, n)
			act := j.act.room(buf.at(2), r*cols+c, n)
			j.by.f(act, gate, up)
			j.act.store(act, r*cols+c)
		}
	}
}

type gatedGrad[T vec.Float] struct {
	e                  *engine[T]
	dgu, act, dact, gu view[T]
	again              bool // act is computed too
	by                 gate[T]
	narrow             bool
	rows, perTask      int
}

// gateGrad computes dgu from dact and gu and, unless act is nil, act = f(gate, up).
func (e *engine[T]) gateGrad(dgu, act, dact, gu *tensor.Tensor, by gate[T]) {
	j := &e.gatedGrad
	*j = gatedGrad[T]{
		e: e, dgu: e.view(dgu), dact: e.view(dact), gu: e.view(gu), again: act != nil, by: by, rows: dact.Rows(),
	}
	j.act = j.dgu
	if j.again {
		j.act = e.view(act)
	}
	j.narrow = e.narrow(dact.Cols(), &j.dgu, &j.act, &j.dact, &j.gu) != nil
	e.reserve(6 * tile)
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, dact.Cols())
	e.pool.Run(tasks, j)
}

// Do computes the gradients of the rows of one task, a tile of columns at a time.
func (j *gatedGrad[T]) Do(worker, task int) {
	cols := j.dact.cols
	buf := j.e.buffers(worker, tile)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		if j.narrow {
			gu, dgu := j.gu.bf16[2*r*cols:], j.dgu.bf16[2*r*cols:]
			act := dgu // dgu is written last
			if j.again {
				act = j.act.bf16[r*cols:]
			}
			j.by.narrowGrad(dgu[:cols], dgu[cols:], act, j.dact.bf16[r*cols:], gu, gu[cols:])
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
			j.by.grad(dgate, dup, act, dact, gate, up)
			j.dgu.store(dgate, g)
			j.dgu.store(dup, u)
			if j.again {
				j.act.store(act, r*cols+c)
			}
		}
	}
}
