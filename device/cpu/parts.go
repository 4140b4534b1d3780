package cpu

import (
	"fmt"
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// CopyRuns implements device.Device.
func (d *Device) CopyRuns(dst, src *tensor.Tensor, r device.Runs) {
	const op = "CopyRuns"
	storage(op, "dst", dst, reference(src))
	storage(op, "src", src, reference(src))
	inside(op, "dst", dst, r.To, r.Count, r.Rows, r.Cols)
	inside(op, "src", src, r.From, r.Count, r.Rows, r.Cols)
	if reference(src) {
		d.f64.runCopyRuns(dst, src, r)
	} else {
		d.f32.runCopyRuns(dst, src, r)
	}
}

// inside panics unless runs of rows lie in t.
func inside(op, name string, t *tensor.Tensor, p device.Place, runs, rows, cols int) {
	last := p.Row + max(runs-1, 0)*p.Step + rows
	if p.Row < 0 || p.Step < 0 || p.Col < 0 || last > t.Rows() || p.Col+cols > t.Cols() {
		panic(fmt.Sprintf("cpu: %s: %s is %v, too small for %d runs of %d rows and %d columns at %+v",
			op, name, t, runs, rows, cols, p))
	}
}

type copyRuns[T vec.Float] struct {
	e        *engine[T]
	dst, src view[T]
	device.Runs
	perTask  int
	to, from *tensor.Tensor
}

func (e *engine[T]) runCopyRuns(dst, src *tensor.Tensor, r device.Runs) {
	j := &e.copyRuns
	*j = copyRuns[T]{e: e, dst: e.view(dst), src: e.view(src), Runs: r, to: dst, from: src}
	e.reserve(2 * r.Cols)
	var tasks int
	j.perTask, tasks = rowTasks(r.Count*r.Rows, r.Cols)
	e.pool.Run(tasks, j)
}

// Do copies the rows of one task.
func (j *copyRuns[T]) Do(worker, task int) {
	from, to := span(task, j.perTask, j.Count*j.Rows)
	buf := j.e.buffers(worker, j.Cols)
	for i := from; i < to; i++ {
		run, row := i/j.Rows, i%j.Rows
		dst := (j.To.Row+run*j.To.Step+row)*j.dst.cols + j.To.Col
		src := (j.From.Row+run*j.From.Step+row)*j.src.cols + j.From.Col
		j.row(buf, dst, src)
	}
}

// row copies one row, from element src on to element dst on.
func (j *copyRuns[T]) row(buf buffers[T], dst, src int) {
	if !j.Add && j.to.DType() == j.from.DType() {
		size := j.to.DType().Size()
		copy(j.to.Raw()[dst*size:(dst+j.Cols)*size], j.from.Raw()[src*size:])
		return
	}
	x := j.src.load(buf.at(0), src, j.Cols)
	y := j.dst.room(buf.at(1), dst, j.Cols)
	if j.Add {
		j.e.vec.Mix(y, j.dst.load(y, dst, j.Cols), x, 1, 1)
	} else {
		copy(y, x)
	}
	j.dst.store(y, dst)
}

// MergeAttention implements device.Device.
func (d *Device) MergeAttention(out, lse, part, partLSE *tensor.Tensor, heads device.Heads, m device.Merge) {
	const op = "MergeAttention"
	ref := reference(lse)
	shape(op, "out", out, out.Rows(), heads.Q*heads.Size)
	shape(op, "part", part, part.Rows(), heads.Q*heads.Size)
	shape(op, "lse", lse, heads.Q, out.Rows())
	shape(op, "partLSE", partLSE, heads.Q, part.Rows())
	storage(op, "out", out, ref)
	storage(op, "part", part, ref)
	wide(op, "lse", lse, ref)
	wide(op, "partLSE", partLSE, ref)
	inside(op, "out", out, m.To, m.Count, m.Rows, out.Cols())
	inside(op, "part", part, m.From, m.Count, m.Rows, out.Cols())
	if m.Shift != nil && len(m.Shift) != heads.Q {
		panic(fmt.Sprintf("cpu: %s: %d shifts for %d heads", op, len(m.Shift), heads.Q))
	}
	if ref {
		d.f64.runMerge(out, lse, part, partLSE, heads, m)
	} else {
		d.f32.runMerge(out, lse, part, partLSE, heads, m)
	}
}

type mergeAttention[T vec.Float] struct {
	e         *engine[T]
	out, part view[T]
	lse, from view[T] // [H, N], [H, M]
	heads     device.Heads
	device.Merge
	perTask int
}

func (e *engine[T]) runMerge(out, lse, part, partLSE *tensor.Tensor, heads device.Heads, m device.Merge) {
	j := &e.merge
	*j = mergeAttention[T]{
		e: e, out: e.view(out), part: e.view(part), lse: e.view(lse), from: e.view(partLSE), heads: heads, Merge: m,
	}
	e.reserve(2 * heads.Size)
	var tasks int
	j.perTask, tasks = rowTasks(m.Count*m.Rows, out.Cols())
	e.pool.Run(tasks, j)
}

// Do merges the rows of one task.
func (j *mergeAttention[T]) Do(worker, task int) {
	from, to := span(task, j.perTask, j.Count*j.Rows)
	buf := j.e.buffers(worker, j.heads.Size)
	for i := from; i < to; i++ {
		run, row := i/j.Rows, i%j.Rows
		dst, src := j.To.Row+run*j.To.Step+row, j.From.Row+run*j.From.Step+row
		for h := range j.heads.Q {
			j.head(buf, dst, src, h)
		}
	}
}

// head merges row src of the part into row dst, for one head.
func (j *mergeAttention[T]) head(buf buffers[T], dst, src, h int) {
	lse, l := &j.lse.native[h*j.lse.cols+dst], j.from.native[h*j.from.cols+src]
	if j.Shift != nil {
		l += T(j.Shift[h])
	}
	a, b := T(0), T(1)
	if j.Fresh {
		*lse = l
	} else {
		a, b, *lse = shares(*lse, l)
	}
	if a == 1 {
		return // the part adds nothing
	}
	n := j.heads.Size
	x := j.part.load(buf.at(0), src*j.part.cols+h*n, n)
	at := dst*j.out.cols + h*n
	y := j.out.room(buf.at(1), at, n)
	if b == 1 {
		copy(y, x) // the replaced row may be undefined
	} else {
		j.e.vec.Mix(y, j.out.load(y, at, n), x, a, b)
	}
	j.out.store(y, at)
}

// shares returns the shares e^(a−l) and e^(b−l) of two log-sum-exps, and their combined log-sum-exp l. If b is −Inf,
// the first stays unchanged, even if it has no keys either.
func shares[T vec.Float](a, b T) (x, y, l T) {
	top := max(a, b)
	if math.IsInf(float64(b), -1) {
		return 1, 0, a
	}
	p, q := math.Exp(float64(a-top)), math.Exp(float64(b-top))
	return T(p / (p + q)), T(q / (p + q)), top + T(math.Log(p+q))
}
