package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// AddValues implements device.Device.
func (d *Device) AddValues(qkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	const op = "AddValues"
	checkValues(op, "qkv", qkv, table, weight, ids, heads)
	if reference(qkv) {
		d.f64.runAddValues(qkv, table, weight, ids, heads)
	} else {
		d.f32.runAddValues(qkv, table, weight, ids, heads)
	}
}

// AddValuesGrad implements device.Device.
func (d *Device) AddValuesGrad(dtable, dweight, dqkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	const op = "AddValuesGrad"
	checkValues(op, "dqkv", dqkv, table, weight, ids, heads)
	shape(op, "dtable", dtable, table.Rows(), table.Cols())
	wide(op, "dtable", dtable, reference(dqkv))
	length(op, "dweight", dweight, 1)
	wide(op, "dweight", dweight, reference(dqkv))
	if reference(dqkv) {
		d.f64.runAddValuesGrad(dtable, dweight, dqkv, table, weight, ids, heads)
	} else {
		d.f32.runAddValuesGrad(dtable, dweight, dqkv, table, weight, ids, heads)
	}
}

func checkValues(op, name string, qkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	ref := reference(qkv)
	shape(op, name, qkv, ids.Len(), heads.Cols())
	storage(op, name, qkv, ref)
	shape(op, "table", table, table.Rows(), heads.KV*heads.Size)
	storage(op, "table", table, ref)
	length(op, "weight", weight, 1)
	wide(op, "weight", weight, ref)
	checkIDs(op, "table", table.Rows(), ids)
}

type addValues[T vec.Float] struct {
	e          *engine[T]
	qkv, table view[T]
	weight     T
	ids        []int32
	first      int // column of the value heads
	perTask    int
}

func (e *engine[T]) runAddValues(qkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	j := &e.values
	*j = addValues[T]{
		e: e, qkv: e.view(qkv), table: e.view(table), weight: e.view(weight).native[0], ids: ids.I32(),
		first: (heads.Q + heads.KV) * heads.Size,
	}
	e.reserve(2 * table.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(len(j.ids), table.Cols())
	e.pool.Run(tasks, j)
}

// Do adds the rows of one task's tokens.
func (j *addValues[T]) Do(worker, task int) {
	cols := j.table.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, len(j.ids))
	for i := from; i < to; i++ {
		at := i*j.qkv.cols + j.first
		v := j.qkv.load(buf.at(0), at, cols)
		j.e.vec.Axpy(v, j.table.load(buf.at(1), int(j.ids[i])*cols, cols), j.weight)
		j.qkv.store(v, at)
	}
}

type addValuesGrad[T vec.Float] struct {
	e           *engine[T]
	dtable      []T
	dqkv, table view[T]
	weight      T
	ids         []int32
	first       int
	sums        []float64 // of the weight's gradient, per task
}

func (e *engine[T]) runAddValuesGrad(dtable, dweight, dqkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	j := &e.valuesGrad
	*j = addValuesGrad[T]{
		e: e, dtable: e.view(dtable).native, dqkv: e.view(dqkv), table: e.view(table), weight: e.view(weight).native[0],
		ids:   ids.I32(),
		first: (heads.Q + heads.KV) * heads.Size,
	}
	tasks := ceilDiv(table.Cols(), embedCols)
	j.sums = e.taskSums(tasks)
	e.reserve(2 * embedCols)
	e.pool.Run(tasks, j)
	total := 0.0
	for _, s := range j.sums {
		total += s
	}
	e.view(dweight).native[0] += T(total)
}

// Do adds one slice of columns of every token, in token order.
func (j *addValuesGrad[T]) Do(worker, task int) {
	cols := j.table.cols
	buf := j.e.buffers(worker, embedCols)
	from, to := span(task, embedCols, cols)
	sum := 0.0
	for i, id := range j.ids {
		row := int(id) * cols
		dv := j.dqkv.load(buf.at(0), i*j.dqkv.cols+j.first+from, to-from)
		sum += float64(j.e.vec.Dot(dv, j.table.load(buf.at(1), row+from, to-from)))
		j.e.vec.Axpy(j.dtable[row+from:row+to], dv, j.weight)
	}
	j.sums[task] = sum
}
