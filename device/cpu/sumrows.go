package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// SumRows implements device.Device.
func (d *Device) SumRows(dst, x *tensor.Tensor) {
	const op = "SumRows"
	length(op, "dst", dst, x.Cols())
	wide(op, "dst", dst, reference(x))
	storage(op, "x", x, reference(x))
	if reference(x) {
		d.f64.runSumRows(dst, x)
	} else {
		d.f32.runSumRows(dst, x)
	}
}

type sumRows[T vec.Float] struct {
	e             *engine[T]
	x             view[T]
	sums          []T // one row per task
	narrow        *vec.Narrow[T]
	rows, perTask int
}

func (e *engine[T]) runSumRows(dst, x *tensor.Tensor) {
	j := &e.sumRows
	*j = sumRows[T]{e: e, x: e.view(x), rows: x.Rows()}
	cols := x.Cols()
	j.narrow = e.narrow(cols, &j.x)
	e.reserve(cols)
	var tasks int
	j.perTask, tasks = sumTasks(j.rows)
	j.sums = e.partials(tasks, cols)
	e.pool.Run(tasks, j)
	sum := e.view(dst)
	for t := range tasks {
		e.vec.Add(sum.native, j.sums[t*cols:][:cols])
	}
}

// Do adds the rows of one task.
func (j *sumRows[T]) Do(worker, task int) {
	cols := j.x.cols
	sum := j.sums[task*cols:][:cols]
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		if j.narrow != nil {
			j.narrow.Add(sum, j.x.bf16[r*cols:])
			continue
		}
		j.e.vec.Add(sum, j.x.load(j.e.scratch[worker], r*cols, cols))
	}
}
