package cpu

import (
	"math"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// GateRows implements device.Device.
func (d *Device) GateRows(dst, src, gates *tensor.Tensor) {
	checkGates("GateRows", dst, src, gates)
	if reference(src) {
		d.f64.runGateRows(dst, src, gates)
	} else {
		d.f32.runGateRows(dst, src, gates)
	}
}

// GateRowsGrad implements device.Device.
func (d *Device) GateRowsGrad(dsrc, dgates, dy, src, gates *tensor.Tensor) {
	const op = "GateRowsGrad"
	checkGates(op, dy, src, gates)
	checkGates(op, dsrc, src, dgates)
	if reference(src) {
		d.f64.runGateRowsGrad(dsrc, dgates, dy, src, gates)
	} else {
		d.f32.runGateRowsGrad(dsrc, dgates, dy, src, gates)
	}
}

func checkGates(op string, dst, src, gates *tensor.Tensor) {
	shape(op, "src", src, dst.Rows(), dst.Cols())
	storage(op, "src", src, reference(src))
	storage(op, "dst", dst, reference(src))
	length(op, "gates", gates, src.Rows())
	wide(op, "gates", gates, reference(src))
}

type gateRows[T vec.Float] struct {
	e             *engine[T]
	dst, src      view[T]
	gates         []T
	rows, perTask int
}

func (e *engine[T]) runGateRows(dst, src, gates *tensor.Tensor) {
	j := &e.gateRows
	g := e.view(gates)
	*j = gateRows[T]{e: e, dst: e.view(dst), src: e.view(src), gates: g.native, rows: src.Rows()}
	e.reserve(2 * src.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, src.Cols())
	e.pool.Run(tasks, j)
}

// Do adds the rows of one task.
func (j *gateRows[T]) Do(worker, task int) {
	cols := j.src.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		dst := j.dst.load(buf.at(0), r*cols, cols)
		j.e.vec.Axpy(dst, j.src.load(buf.at(1), r*cols, cols), sigmoid(j.gates[r]))
		j.dst.store(dst, r*cols)
	}
}

func sigmoid[T vec.Float](x T) T { return T(1 / (1 + math.Exp(-float64(x)))) }

type gateRowsGrad[T vec.Float] struct {
	e             *engine[T]
	dsrc, dy, src view[T]
	gates, dgates []T
	rows, perTask int
}

func (e *engine[T]) runGateRowsGrad(dsrc, dgates, dy, src, gates *tensor.Tensor) {
	j := &e.gateRowsGrad
	g, dg := e.view(gates), e.view(dgates)
	*j = gateRowsGrad[T]{
		e: e, dsrc: e.view(dsrc), dy: e.view(dy), src: e.view(src), gates: g.native, dgates: dg.native,
		rows: src.Rows(),
	}
	e.reserve(3 * src.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, src.Cols())
	e.pool.Run(tasks, j)
}

// Do computes the gradients of one task's rows.
func (j *gateRowsGrad[T]) Do(worker, task int) {
	cols := j.src.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		dy, src := j.dy.load(buf.at(0), r*cols, cols), j.src.load(buf.at(1), r*cols, cols)
		s := sigmoid(j.gates[r])
		j.dgates[r] = s * (1 - s) * j.e.vec.Dot(dy, src)
		dsrc := j.dsrc.room(buf.at(2), r*cols, cols)
		j.e.vec.Scale(dsrc, dy, s)
		j.dsrc.store(dsrc, r*cols)
	}
}
