package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// ShortConv implements device.Device.
func (d *Device) ShortConv(out, x, taps *tensor.Tensor, mask device.Mask) {
	const op = "ShortConv"
	checkShortConv(op, x, taps, mask)
	shape(op, "out", out, x.Rows(), x.Cols())
	storage(op, "out", out, reference(x))
	if reference(x) {
		d.f64.runShortConv(out, x, taps, mask)
	} else {
		d.f32.runShortConv(out, x, taps, mask)
	}
}

// ShortConvGrad implements device.Device.
func (d *Device) ShortConvGrad(dx, dtaps, dout, x, taps *tensor.Tensor, mask device.Mask) {
	const op = "ShortConvGrad"
	checkShortConv(op, x, taps, mask)
	shape(op, "dx", dx, x.Rows(), x.Cols())
	storage(op, "dx", dx, reference(x))
	shape(op, "dout", dout, x.Rows(), x.Cols())
	storage(op, "dout", dout, reference(x))
	shape(op, "dtaps", dtaps, taps.Rows(), taps.Cols())
	wide(op, "dtaps", dtaps, reference(x))
	if reference(x) {
		d.f64.runShortConvGrad(dx, dtaps, dout, x, taps, mask)
	} else {
		d.f32.runShortConvGrad(dx, dtaps, dout, x, taps, mask)
	}
}

func checkShortConv(op string, x, taps *tensor.Tensor, mask device.Mask) {
	ref := reference(x)
	storage(op, "x", x, ref)
	shape(op, "taps", taps, x.Cols(), taps.Cols())
	wide(op, "taps", taps, ref)
	if taps.Cols() > maxTaps {
		panic("cpu: " + op + ": too many taps")
	}
	if mask.Len < 1 || x.Rows()%mask.Len != 0 {
		panic("cpu: " + op + ": the tokens are no whole rows")
	}
	if mask.Start != nil {
		length(op, "start", mask.Start, x.Rows())
		dtype(op, "start", mask.Start, tensor.I32)
	}
}

// shortConv is one call, forward or backward. A task is a stretch of tokens.
type shortConv[T vec.Float] struct {
	e             *engine[T]
	x, out        view[T]
	dx            view[T] // in the backward pass, where out is the gradient of the result; the zero view forward
	back          bool
	length        int // of a row
	start         []int32
	k             int
	taps          []T // [k+1, C]: by distance, that of the token itself first; then ones
	dtaps         []T // per task, [k, C]
	rows, perTask int
}

func (e *engine[T]) newShortConv(x, taps *tensor.Tensor, mask device.Mask) *shortConv[T] {
	j, k := &e.shortConv, taps.Cols()
	*j = shortConv[T]{e: e, x: e.view(x), length: mask.Len, k: k, taps: j.taps[:0], rows: x.Rows()}
	if mask.Start != nil {
		j.start = mask.Start.I32()
	}
	w := e.view(taps)
	for distance := range k {
		for c := range x.Cols() {
			j.taps = append(j.taps, w.native[c*k+k-1-distance])
		}
	}
	for range x.Cols() {
		j.taps = append(j.taps, 1)
	}
	return j
}

func (e *engine[T]) runShortConv(out, x, taps *tensor.Tensor, mask device.Mask) {
	j := e.newShortConv(x, taps, mask)
	j.out = e.view(out)
	e.reserve((j.k + 2) * x.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, j.k*x.Cols())
	e.pool.Run(tasks, j)
}

func (e *engine[T]) runShortConvGrad(dx, dtaps, dout, x, taps *tensor.Tensor, mask device.Mask) {
	j := e.newShortConv(x, taps, mask)
	j.dx, j.out, j.back = e.view(dx), e.view(dout), true
	cols := x.Cols()
	e.reserve((2*j.k + 4) * cols)
	var tasks int
	j.perTask, tasks = sumTasks(j.rows)
	j.dtaps = e.partials(tasks, j.k*cols)
	e.pool.Run(tasks, j)
	sum := j.dtaps[:j.k*cols]
	for task := 1; task < tasks; task++ {
		e.vec.Add(sum, j.dtaps[task*j.k*cols:][:j.k*cols])
	}
	d := e.view(dtaps).native
	for distance := range j.k {
		for c, v := range sum[distance*cols : (distance+1)*cols] {
			d[c*j.k+j.k-1-distance] += v
		}
	}
}

// sees reports whether token i reads the one at a distance before it.
func (j *shortConv[T]) sees(i, distance int) bool {
	first := 0
	if j.start != nil {
		first = int(j.start[i])
	}
	return i%j.length-distance >= first
}

// tap returns the factors [C] at a distance.
func (j *shortConv[T]) tap(distance int) []T {
	return j.taps[distance*j.x.cols : (distance+1)*j.x.cols]
}

// Do computes the tokens of one task.
func (j *shortConv[T]) Do(worker, task int) {
	from, to := span(task, j.perTask, j.rows)
	if j.back {
		j.grad(worker, task, from, to)
		return
	}
	c, v := j.x.cols, &j.e.vec
	buf := j.e.buffers(worker, c)
	ring := window[T]{k: j.k}
	for i := max(from-j.k+1, 0); i < to; i++ {
		ring.put(i, j.x.load(ring.room(buf, 0, i), i*c, c))
		if i < from {
			continue
		}
		z := buf.at(j.k)
		j.sum(z, &ring, i)
		out := j.out.room(buf.at(j.k+1), i*c, c)
		v.SwiGLU(out, z, j.tap(j.k))
		j.out.store(out, i*c)
	}
}

// sum writes to z [C] the sum of token i and the tokens before it, weighted by the taps.
func (j *shortConv[T]) sum(z []T, ring *window[T], i int) {
	v := &j.e.vec
	v.Mul(z, ring.at(i), j.tap(0))
	for distance := 1; distance < j.k && j.sees(i, distance); distance++ {
		v.MulAdd(z, ring.at(i-distance), j.tap(distance))
	}
}

// grad computes the gradient of the inputs of tokens from … to−1, for which it needs the sums z of the k−1 tokens
// after them, and their contribution to the gradient of the taps.
func (j *shortConv[T]) grad(worker, task, from, to int) {
	c, v := j.x.cols, &j.e.vec
	buf := j.e.buffers(worker, c)
	x, dz := window[T]{k: j.k}, window[T]{k: j.k}
	sums := j.dtaps[task*j.k*c : (task+1)*j.k*c]
	for i := max(from-j.k+1, 0); i < to+j.k-1; i++ {
		if i < j.rows {
			x.put(i, j.x.load(x.room(buf, 0, i), i*c, c))
		}
		if i >= from && i < j.rows {
			z, d := buf.at(2*j.k), dz.room(buf, j.k, i)
			j.sum(z, &x, i)
			dout := j.out.load(buf.at(2*j.k+1), i*c, c)
			v.SwiGLUGrad(d, buf.at(2*j.k+2), buf.at(2*j.k+3), dout, z, j.tap(j.k))
			dz.put(i, d)
			for distance := 0; i < to && distance < j.k && j.sees(i, distance); distance++ {
				v.MulAdd(sums[distance*c:(distance+1)*c], d, x.at(i-distance))
			}
		}
		if r := i - j.k + 1; r >= from {
			dx := j.dx.room(buf.at(2*j.k+1), r*c, c)
			v.Mul(dx, dz.at(r), j.tap(0))
			for distance := 1; distance < j.k && r+distance < j.rows && j.sees(r+distance, distance); distance++ {
				v.MulAdd(dx, dz.at(r+distance), j.tap(distance))
			}
			j.dx.store(dx, r*c)
		}
	}
}

// A window holds the rows [C] of the last k tokens. Rows of memory in another storage lie in k of the worker's buffers.
type window[T vec.Float] struct {
	k    int
	rows [maxTaps][]T
}

// maxTaps limits the tokens that a convolution reads.
const maxTaps = 16

func (w *window[T]) room(buf buffers[T], first, i int) []T { return buf.at(first + i%w.k) }
func (w *window[T]) put(i int, row []T)                    { w.rows[i%w.k] = row }
func (w *window[T]) at(i int) []T                          { return w.rows[i%w.k] }
