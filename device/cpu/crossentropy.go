package cpu

import (
	"fmt"
	"math"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// ignored is the target of a token without a loss.
const ignored = -100

// CrossEntropy implements device.Device.
func (d *Device) CrossEntropy(loss, dlogits, logits, targets *tensor.Tensor) {
	const op = "CrossEntropy"
	rows, cols, ref := logits.Rows(), logits.Cols(), reference(logits)
	length(op, "loss", loss, rows)
	length(op, "targets", targets, rows)
	wide(op, "loss", loss, ref)
	dtype(op, "targets", targets, tensor.I32)
	storage(op, "logits", logits, ref)
	if !dlogits.IsZero() {
		shape(op, "dlogits", dlogits, rows, cols)
		storage(op, "dlogits", dlogits, ref)
	}
	for i, t := range targets.I32() {
		if uint(t) >= uint(cols) && t != ignored {
			panic(fmt.Sprintf("cpu: %s: target %d is %d, but there are %d logits", op, i, t, cols))
		}
	}
	if ref {
		d.f64.runCrossEntropy(loss, dlogits, logits, targets)
	} else {
		d.f32.runCrossEntropy(loss, dlogits, logits, targets)
	}
}

type crossEntropy[T vec.Float] struct {
	e                     *engine[T]
	loss, dlogits, logits view[T]
	grad                  bool
	targets               []int32
	perTask               int
}

func (e *engine[T]) runCrossEntropy(loss, dlogits, logits, targets *tensor.Tensor) {
	j := &e.crossEntropy
	*j = crossEntropy[T]{e: e, loss: e.view(loss), logits: e.view(logits), grad: !dlogits.IsZero(), targets: targets.I32()}
	if j.grad {
		j.dlogits = e.view(dlogits)
	}
	e.reserve(2 * logits.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(len(j.targets), logits.Cols())
	e.pool.Run(tasks, j)
}

// Do computes the loss and the gradient of one task's rows.
func (j *crossEntropy[T]) Do(worker, task int) {
	cols := j.logits.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, len(j.targets))
	for r := from; r < to; r++ {
		at, target := r*cols, int(j.targets[r])
		p := buf.at(0)
		if j.grad {
			p = j.dlogits.room(p, at, cols)
		}
		if target == ignored {
			j.loss.native[r] = 0
			if j.grad {
				clear(p)
				j.dlogits.store(p, at)
			}
			continue
		}
		x := j.logits.load(buf.at(1), at, cols)
		m, right := j.e.vec.Max(x), x[target] // p may overwrite x
		sum := j.e.vec.ExpSum(p, x, m)
		j.loss.native[r] = T(math.Log(float64(sum)) + (float64(m) - float64(right)))
		if j.grad {
			j.e.vec.Scale(p, p, 1/sum)
			p[target]--
			j.dlogits.store(p, at)
		}
	}
}
