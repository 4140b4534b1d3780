package cpu

import (
	"fmt"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Embedding implements device.Device.
func (d *Device) Embedding(x, table, ids *tensor.Tensor) {
	const op = "Embedding"
	checkEmbedding(op, "x", "table", x, table, ids)
	storage(op, "table", table, reference(x))
	if reference(x) {
		d.f64.runEmbedding(x, table, ids)
	} else {
		d.f32.runEmbedding(x, table, ids)
	}
}

// EmbeddingGrad implements device.Device.
func (d *Device) EmbeddingGrad(dtable, dx, ids *tensor.Tensor) {
	const op = "EmbeddingGrad"
	checkEmbedding(op, "dx", "dtable", dx, dtable, ids)
	wide(op, "dtable", dtable, reference(dx))
	if reference(dx) {
		d.f64.runEmbeddingGrad(dtable, dx, ids)
	} else {
		d.f32.runEmbeddingGrad(dtable, dx, ids)
	}
}

func checkEmbedding(op, xName, tableName string, x, table, ids *tensor.Tensor) {
	shape(op, xName, x, ids.Len(), table.Cols())
	wide(op, xName, x, reference(x))
	checkRows(op, tableName, table.Rows(), ids)
}

// checkRows panics unless every id is below rows, or elsewhere.
func checkRows(op, tableName string, rows int, ids *tensor.Tensor) {
	dtype(op, "ids", ids, tensor.I32)
	for i, id := range ids.I32() {
		if id != device.Elsewhere {
			checkID(op, tableName, rows, i, id)
		}
	}
}

// checkIDs panics unless every id is below rows.
func checkIDs(op, tableName string, rows int, ids *tensor.Tensor) {
	dtype(op, "ids", ids, tensor.I32)
	for i, id := range ids.I32() {
		checkID(op, tableName, rows, i, id)
	}
}

func checkID(op, tableName string, rows, i int, id int32) {
	if uint(id) >= uint(rows) {
		panic(fmt.Sprintf("cpu: %s: token %d has id %d, but %s has %d rows", op, i, id, tableName, rows))
	}
}

type embed[T vec.Float] struct {
	x, table view[T]
	ids      []int32
	perTask  int
}

func (e *engine[T]) runEmbedding(x, table, ids *tensor.Tensor) {
	j := &e.embed
	*j = embed[T]{x: e.view(x), table: e.view(table), ids: ids.I32()}
	var tasks int
	j.perTask, tasks = rowTasks(len(j.ids), x.Cols())
	e.pool.Run(tasks, j)
}

// Do copies the rows of one task's tokens.
func (j *embed[T]) Do(_, task int) {
	cols := j.x.cols
	from, to := span(task, j.perTask, len(j.ids))
	for i := from; i < to; i++ {
		x := j.x.native[i*cols : (i+1)*cols]
		if j.ids[i] == device.Elsewhere {
			clear(x)
			continue
		}
		row := j.table.load(x, int(j.ids[i])*cols, cols)
		if j.table.native != nil {
			copy(x, row)
		}
	}
}

// embedCols is the width of the column slices that EmbeddingGrad processes in parallel. Parallel rows would collide
// on equal ids.
const embedCols = 64

type embedGrad[T vec.Float] struct {
	vec        *vec.Table[T]
	dtable, dx view[T]
	ids        []int32
}

func (e *engine[T]) runEmbeddingGrad(dtable, dx, ids *tensor.Tensor) {
	j := &e.embedGrad
	*j = embedGrad[T]{vec: &e.vec, dtable: e.view(dtable), dx: e.view(dx), ids: ids.I32()}
	e.pool.Run(ceilDiv(dx.Cols(), embedCols), j)
}

// Do adds one slice of columns of every token, in token order.
func (j *embedGrad[T]) Do(_, task int) {
	cols := j.dx.cols
	from, to := span(task, embedCols, cols)
	for i, id := range j.ids {
		if id == device.Elsewhere {
			continue
		}
		row := int(id) * cols
		j.vec.Add(j.dtable.native[row+from:row+to], j.dx.native[i*cols+from:i*cols+to])
	}
}
