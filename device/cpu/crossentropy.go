package cpu

import (
	"fmt"
	"math"
	"slices"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// CrossEntropy implements device.Device.
func (d *Device) CrossEntropy(loss, dlogits, logits, targets *tensor.Tensor, o device.LossOptions) {
	const op = "CrossEntropy"
	rows, cols, ref := logits.Rows(), logits.Cols(), reference(logits)
	length(op, "targets", targets, rows)
	if o.Given == nil {
		length(op, "loss", loss, rows)
		wide(op, "loss", loss, ref)
	} else {
		length(op, "the given log Z", o.Given, rows)
		wide(op, "the given log Z", o.Given, ref)
	}
	dtype(op, "targets", targets, tensor.I32)
	storage(op, "logits", logits, ref)
	if o.LogZ != nil {
		length(op, "log Z", o.LogZ, rows)
		wide(op, "log Z", o.LogZ, ref)
	}
	if o.Behind != nil {
		length(op, "behind", o.Behind, rows)
		wide(op, "behind", o.Behind, ref)
	}
	if !dlogits.IsZero() {
		shape(op, "dlogits", dlogits, rows, cols)
		storage(op, "dlogits", dlogits, ref)
	}
	if o.Teacher != nil {
		checkTeacher(op, o, rows, dlogits.IsZero(), ref)
	}
	for i, t := range targets.I32() {
		if uint(t) >= uint(cols) && t != device.Ignored && t != device.Elsewhere {
			panic(fmt.Sprintf("cpu: %s: target %d is %d, but there are %d logits", op, i, t, cols))
		}
	}
	if ref {
		d.f64.runCrossEntropy(loss, dlogits, logits, targets, o)
	} else {
		d.f32.runCrossEntropy(loss, dlogits, logits, targets, o)
	}
}

type crossEntropy[T vec.Float] struct {
	e                     *engine[T]
	loss, dlogits, logits view[T]
	logZ, behind          []T // nil if not requested
	given                 []T // log Z, if more columns are elsewhere; else nil
	grad                  bool
	softcap, zLoss, scale float64
	targets               []int32
	labels                tensor.RNG
	firstLabel            uint64
	perTask               int
	teacher               teacher[T]
}

func (e *engine[T]) runCrossEntropy(loss, dlogits, logits, targets *tensor.Tensor, o device.LossOptions) {
	j := &e.crossEntropy
	*j = crossEntropy[T]{
		e: e, logits: e.view(logits), grad: !dlogits.IsZero(), targets: targets.I32(),
		softcap: o.Softcap, zLoss: o.ZLoss, scale: o.Scale, labels: o.Labels, firstLabel: o.FirstLabel,
		teacher: e.teacher(o.Teacher),
	}
	if o.Scale == 0 {
		j.scale = 1
	}
	if j.grad {
		j.dlogits = e.view(dlogits)
	}
	if o.Given != nil {
		given := e.view(o.Given)
		j.given = given.native
	} else {
		j.loss = e.view(loss)
		if o.LogZ != nil {
			logZ := e.view(o.LogZ)
			j.logZ = logZ.native
		}
		if o.Behind != nil {
			behind := e.view(o.Behind)
			j.behind = behind.native
		}
	}
	e.reserve(4 * logits.Cols())
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
		if target == device.Ignored {
			j.write(r, 0, 0, 0)
			if j.teacher.k > 0 {
				j.teacher.kl.native[r] = 0
			}
			if j.grad {
				clear(p)
				j.dlogits.store(p, at)
			}
			continue
		}
		x := j.logits.load(buf.at(1), at, cols)
		square := buf.at(2)
		if j.labels != (tensor.RNG{}) {
			target = j.draw(r, x, square)
			j.targets[r] = int32(target)
		}
		if j.grad && j.softcap > 0 {
			j.e.vec.Mul(square, x, x)
		}
		var taught []T
		if j.teacher.k > 0 {
			taught = j.teacher.differ(&j.e.vec, buf.at(3), x, r)
		}
		var m, right, sum T // p may overwrite x
		if target >= 0 {
			right = x[target]
		}
		log := 0.0
		if j.given != nil {
			m, sum = j.given[r], 1
			j.e.vec.ExpSum(p, x, m)
		} else {
			m = j.e.vec.Max(x)
			sum = j.e.vec.ExpSum(p, x, m)
			log = math.Log(float64(sum))
			behind := float64(m) - float64(right)
			j.write(r, log+behind, log+float64(m), behind)
		}
		if j.grad {
			j.gradient(p, square, taught, target, sum, log+float64(m))
			j.dlogits.store(p, at)
		}
	}
}

// write stores the results of row r, unless log Z is given.
func (j *crossEntropy[T]) write(r int, loss, logZ, behind float64) {
	if j.given != nil {
		return
	}
	j.loss.native[r] = T(loss)
	if j.logZ != nil {
		j.logZ[r] = T(logZ)
	}
	if j.behind != nil {
		j.behind[r] = T(behind)
	}
}

// gradient turns a row p of exponentials with the given sum into the gradient of the logits. square holds the squares
// of the logits if they are capped; it is overwritten. taught is the result of teacher.differ, nil without a teacher.
func (j *crossEntropy[T]) gradient(p, square, taught []T, target int, sum T, logZ float64) {
	scale, weight := 1/sum, j.teacher.weight
	if j.zLoss != 0 || j.scale != 1 || weight != 1 {
		scale = T(j.scale * (weight + 2*j.zLoss*logZ) / float64(sum))
	}
	j.e.vec.Scale(p, p, scale)
	if target >= 0 {
		p[target] -= T(j.scale * weight)
	}
	if taught != nil {
		j.e.vec.Axpy(p, taught, T(j.scale*j.teacher.scale))
	}
	if j.softcap > 0 {
		j.e.vec.Mul(square, square, p)
		j.e.vec.Axpy(p, square, T(-1/(j.softcap*j.softcap)))
	}
}

// draw samples a label from the softmax of row r, x; buf is overwritten.
func (j *crossEntropy[T]) draw(r int, x, buf []T) int {
	const block = 64
	sum := j.e.vec.ExpSum(buf, x, j.e.vec.Max(x))
	rest := j.labels.Float64(j.firstLabel+uint64(r)) * float64(sum)
	for from := 0; from < len(buf); from += block {
		p := buf[from:min(from+block, len(buf))]
		if s := j.e.vec.Sum(p); s <= rest {
			rest -= s
			continue
		}
		for i, v := range p {
			if float64(v) > rest {
				return from + i
			}
			rest -= float64(v)
		}
	}
	// Rounding errors left a remainder: take the most likely label, or the first if logits are NaN.
	return max(0, slices.Index(x, j.e.vec.Max(x)))
}
