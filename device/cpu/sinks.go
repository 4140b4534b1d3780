package cpu

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// AttentionSinksGrad implements device.Device.
func (d *Device) AttentionSinksGrad(dsinks, dout, out, lse, sinks *tensor.Tensor, heads device.Heads) {
	const op = "AttentionSinksGrad"
	ref := reference(out)
	storage(op, "out", out, ref)
	storage(op, "dout", dout, ref)
	shape(op, "out", out, lse.Cols(), heads.Q*heads.Size)
	shape(op, "dout", dout, lse.Cols(), heads.Q*heads.Size)
	wide(op, "lse", lse, ref)
	shape(op, "lse", lse, heads.Q, lse.Cols())
	for _, t := range []*tensor.Tensor{dsinks, sinks} {
		length(op, "sinks and their gradient", t, heads.Q)
		wide(op, "sinks and their gradient", t, ref)
	}
	if ref {
		d.f64.runSinksGrad(dsinks, dout, out, lse, sinks, heads)
	} else {
		d.f32.runSinksGrad(dsinks, dout, out, lse, sinks, heads)
	}
}

// sinksGrad is one call. A task is a stretch of rows of one head.
type sinksGrad[T vec.Float] struct {
	e              *engine[T]
	dout, out      view[T]
	lse, sinks     []T
	heads          device.Heads
	rows           int
	perTask, tasks int       // rows of a task, tasks of a head
	sums           []float64 // per task
}

func (e *engine[T]) runSinksGrad(dsinks, dout, out, lse, sinks *tensor.Tensor, heads device.Heads) {
	j := &e.sinks
	*j = sinksGrad[T]{
		e: e, dout: e.view(dout), out: e.view(out), lse: e.view(lse).native, sinks: e.view(sinks).native, heads: heads,
		rows: out.Rows(),
	}
	j.perTask, j.tasks = sumTasks(out.Rows())
	j.sums = e.taskSums(heads.Q * j.tasks)
	e.reserve(2 * heads.Size)
	e.pool.Run(len(j.sums), j)
	d := e.view(dsinks).native
	for h := range heads.Q {
		sum := 0.0
		for _, s := range j.sums[h*j.tasks : (h+1)*j.tasks] {
			sum += s
		}
		d[h] -= T(sum)
	}
}

// Do sums one stretch.
func (j *sinksGrad[T]) Do(worker, task int) {
	h, size := task/j.tasks, j.heads.Size
	from, to := span(task%j.tasks, j.perTask, j.rows)
	buf := j.e.buffers(worker, size)
	sum := 0.0
	for i := from; i < to; i++ {
		if math.IsInf(float64(j.lse[h*j.rows+i]), -1) {
			continue // nothing has weight
		}
		at := i*j.out.cols + h*size
		delta := j.e.vec.Dot(j.dout.load(buf.at(0), at, size), j.out.load(buf.at(1), at, size))
		sum += math.Exp(float64(j.sinks[h]-j.lse[h*j.rows+i])) * float64(delta)
	}
	j.sums[task] = sum
}
