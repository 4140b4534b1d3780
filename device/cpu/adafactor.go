package cpu

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Adafactor implements device.Device.
func (d *Device) Adafactor(p, g, m, v, c *tensor.Tensor, o device.Adafactor) {
	const op = "Adafactor"
	ref := updates(op, p, g)
	wide(op, "v", v, ref)
	if m != nil {
		updates(op, p, m)
	}
	if c == nil {
		length(op, "v", v, p.Len())
	} else {
		length(op, "v", v, p.Rows())
		length(op, "c", c, p.Cols())
		wide(op, "c", c, ref)
	}
	if ref {
		d.f64.runAdafactor(p, g, m, v, c, o)
	} else {
		d.f32.runAdafactor(p, g, m, v, c, o)
	}
}

// adafactor works in passes over the parameter: first the second moment, then the sizes of the update and of the
// parameter, which determine the rate, then the update. With an unfactored second moment the first two are one pass.
type adafactor[T vec.Float] struct {
	e          *engine[T]
	o          device.Adafactor
	pass       pass
	rows, cols int // an unfactored second moment has rows of one tile
	perTask    int // rows

	p, g, m, v []T
	partial    []T       // if factored: each task's column sums; then the scales of columns and of rows
	scale      []T       // of rows: rowScale·colScale·g is the update
	sums       []float64 // per task: Σ update², Σ p²
	whiten     vec.Whiten[T]
	rate       float64
	descend    []vec.Descend[T] // per worker, because its rate changes with the row
}

// A pass is one round of tasks.
type pass int

const (
	measureWhole pass = iota
	updateWhole
	means
	measure
	update
)

// wideRow is the number of elements of a row processed at a time, so that they are still in the first-level cache for
// a second pass. Squares are summed in T within a piece; the sums of pieces are added in float64.
const wideRow = 2048

func (e *engine[T]) runAdafactor(p, g, m, v, c *tensor.Tensor, o device.Adafactor) {
	j := &e.adafactor
	*j = adafactor[T]{
		e: e, o: o, p: e.view(p).native, g: e.view(g).native, v: e.view(v).native, sums: j.sums, descend: j.descend,
	}
	if m != nil {
		j.m = e.view(m).native
	}
	if j.descend == nil {
		j.descend = make([]vec.Descend[T], e.pool.Threads())
	}
	e.reserve(wideRow)
	if c == nil {
		j.runWhole()
	} else {
		j.rows, j.cols = p.Rows(), p.Cols()
		j.runFactored(e.view(c).native)
	}
}

// runWhole updates with an unfactored second moment.
func (j *adafactor[T]) runWhole() {
	o := &j.o
	tasks := j.tasks(ceilDiv(len(j.p), chunk))
	j.whiten = vec.Whiten[T]{Scale: T(o.Scale), Beta: T(o.Beta2), Keep: T(1 - o.Beta2), Eps: T(o.Eps)}
	j.run(tasks, measureWhole)
	j.settle(tasks)
	j.whiten.Beta, j.whiten.Keep = 1, 0 // the second moment does not change
	j.run(tasks, updateWhole)
}

func (j *adafactor[T]) measureWhole(worker, task int) {
	buf := j.e.scratch[worker]
	from, to := span(task, chunk, len(j.p))
	var u, p float64
	for ; from < to; from += wideRow {
		end := min(from+wideRow, to)
		x := buf[:end-from]
		j.e.vec.Whiten(x, j.g[from:end], j.v[from:end], &j.whiten)
		u += float64(j.e.vec.Dot(x, x))
		p += j.squares(from, end)
	}
	j.sums[2*task], j.sums[2*task+1] = u, p
}

func (j *adafactor[T]) updateWhole(worker, task int) {
	buf := j.e.scratch[worker]
	from, to := span(task, chunk, len(j.p))
	for ; from < to; from += wideRow {
		end := min(from+wideRow, to)
		j.e.vec.Whiten(buf[:end-from], j.g[from:end], j.v[from:end], &j.whiten)
		j.descendRow(worker, from, end, j.rate)
	}
}

// runFactored updates with the means of the second moment over rows, v, and over columns, c.
func (j *adafactor[T]) runFactored(c []T) {
	o, e := &j.o, j.e
	perTask, tasks := sumTasks(j.rows)
	if need := max(tasks*j.cols, j.cols+j.rows); len(e.partial) < need {
		e.partial = make([]T, need)
	}
	j.perTask, j.partial = perTask, e.partial
	j.run(tasks, means)
	columns := j.partial[:j.cols]
	for t := 1; t < tasks; t++ {
		e.vec.Add(columns, j.partial[t*j.cols:(t+1)*j.cols])
	}
	square := o.Scale * o.Scale / float64(j.rows)
	for i, x := range columns {
		c[i] = T(o.Beta2*float64(c[i]) + (1-o.Beta2)*(square*float64(x)+o.Eps))
		columns[i] = T(1 / math.Sqrt(float64(c[i])))
	}
	mean := 0.0
	for _, r := range j.v {
		mean += float64(r) / float64(j.rows)
	}
	j.scale = j.partial[j.cols : j.cols+j.rows]
	for i, r := range j.v {
		j.scale[i] = T(o.Scale * math.Sqrt(mean/float64(r)))
	}
	j.perTask, tasks = rowTasks(j.rows, j.cols)
	j.tasks(tasks)
	j.run(tasks, measure)
	j.settle(tasks)
	j.run(tasks, update)
}

// means adds the squares of a task's rows to the row means and to the task's column sums.
func (j *adafactor[T]) means(task int) {
	o, vec := &j.o, &j.e.vec
	columns := j.partial[task*j.cols : (task+1)*j.cols]
	clear(columns)
	first, last := span(task, j.perTask, j.rows)
	square := o.Scale * o.Scale / float64(j.cols)
	for i := first; i < last; i++ {
		row, sum := j.g[i*j.cols:(i+1)*j.cols], 0.0
		for from := 0; from < j.cols; from += wideRow {
			end := min(from+wideRow, j.cols)
			sum += float64(vec.Dot(row[from:end], row[from:end]))
			vec.MulAdd(columns[from:end], row[from:end], row[from:end])
		}
		j.v[i] = T(o.Beta2*float64(j.v[i]) + (1-o.Beta2)*(square*sum+o.Eps))
	}
}

func (j *adafactor[T]) measure(worker, task int) {
	first, last := span(task, j.perTask, j.rows)
	var u, p float64
	for i := first; i < last; i++ {
		row := 0.0
		for from := 0; from < j.cols; from += wideRow {
			end := min(from+wideRow, j.cols)
			x := j.direction(worker, i, from, end)
			row += float64(j.e.vec.Dot(x, x))
			p += j.squares(i*j.cols+from, i*j.cols+end)
		}
		u += row * float64(j.scale[i]) * float64(j.scale[i])
	}
	j.sums[2*task], j.sums[2*task+1] = u, p
}

func (j *adafactor[T]) update(worker, task int) {
	first, last := span(task, j.perTask, j.rows)
	for i := first; i < last; i++ {
		for from := 0; from < j.cols; from += wideRow {
			end := min(from+wideRow, j.cols)
			j.direction(worker, i, from, end)
			j.descendRow(worker, i*j.cols+from, i*j.cols+end, j.rate*float64(j.scale[i]))
		}
	}
}

// direction returns part of a row of the update, without the row's scale, in the worker's scratch memory.
func (j *adafactor[T]) direction(worker, row, from, to int) []T {
	x := j.e.scratch[worker][:to-from]
	j.e.vec.Mul(x, j.g[row*j.cols+from:row*j.cols+to], j.partial[from:to])
	return x
}

// descendRow subtracts rate times the scratch memory from elements [from, to), through the momentum if there is one.
func (j *adafactor[T]) descendRow(worker, from, to int, rate float64) {
	x, v := j.e.scratch[worker][:to-from], &j.e.vec
	if j.m != nil {
		m := j.m[from:to]
		v.Mix(m, m, x, T(j.o.Beta1), T((1-j.o.Beta1)*rate))
		x, rate = m, 1
	}
	step := &j.descend[worker]
	*step = vec.Descend[T]{Rate: T(rate), Decay: T(j.o.Shrink), Floor: floor[T](j.o.Cautious)}
	v.Descend(j.p[from:to], x, step)
}

// squares returns Σ p² of a stretch if the rate depends on it.
func (j *adafactor[T]) squares(from, to int) float64 {
	if j.o.Absolute {
		return 0
	}
	return float64(j.e.vec.Dot(j.p[from:to], j.p[from:to]))
}

// tasks allocates the sums of n tasks.
func (j *adafactor[T]) tasks(n int) int {
	if len(j.sums) < 2*n {
		j.sums = make([]float64, 2*n)
	}
	return n
}

func (j *adafactor[T]) run(tasks int, pass pass) {
	j.pass = pass
	j.e.pool.Run(tasks, j)
}

// Do does one task of the pass.
func (j *adafactor[T]) Do(worker, task int) {
	switch j.pass {
	case measureWhole:
		j.measureWhole(worker, task)
	case updateWhole:
		j.updateWhole(worker, task)
	case means:
		j.means(task)
	case measure:
		j.measure(worker, task)
	case update:
		j.update(worker, task)
	}
}

// settle computes the rate from the sums of the tasks.
func (j *adafactor[T]) settle(tasks int) {
	var u, p float64
	for i := range tasks {
		u += j.sums[2*i]
		p += j.sums[2*i+1]
	}
	n := float64(len(j.p))
	j.rate = j.o.LR / max(1, math.Sqrt(u/n)/j.o.Clip)
	if !j.o.Absolute {
		j.rate *= max(j.o.MinScale, math.Sqrt(p/n))
	}
}
