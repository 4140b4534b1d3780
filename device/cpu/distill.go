package cpu

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Distillation uses the likeliest columns of a teacher and adds their part to a student's gradient. Both models treat
// all other columns as one column, whose logit is the log-sum-exp of their logits. The sum is computed relative to the
// largest of these logits, so it neither vanishes beside likelier columns nor is a difference of large sums.

// Likeliest implements device.Device.
func (d *Device) Likeliest(ids, p, rest, logits *tensor.Tensor, temperature float64) {
	const op = "Likeliest"
	rows, cols, ref := logits.Rows(), logits.Cols(), reference(logits)
	storage(op, "logits", logits, ref)
	dtype(op, "ids", ids, tensor.I32)
	k := ids.Cols()
	shape(op, "ids", ids, rows, k)
	shape(op, "p", p, rows, k)
	length(op, "rest", rest, rows)
	wide(op, "p", p, ref)
	wide(op, "rest", rest, ref)
	if k > cols || temperature <= 0 {
		panic("cpu: Likeliest: more columns than there are, or a temperature that is not above 0")
	}
	if ref {
		d.f64.runLikeliest(ids, p, rest, logits, temperature)
	} else {
		d.f32.runLikeliest(ids, p, rest, logits, temperature)
	}
}

type likeliest[T vec.Float] struct {
	e               *engine[T]
	ids             []int32
	logits, p, rest view[T]
	k, perTask      int
	temperature     float64
}

func (e *engine[T]) runLikeliest(ids, p, rest, logits *tensor.Tensor, temperature float64) {
	j := &e.likeliest
	*j = likeliest[T]{
		e: e, ids: ids.I32(), logits: e.view(logits), p: e.view(p), rest: e.view(rest), k: ids.Cols(),
		temperature: temperature,
	}
	e.reserve(2 * logits.Cols())
	var tasks int
	j.perTask, tasks = rowTasks(logits.Rows(), logits.Cols())
	e.pool.Run(tasks, j)
}

// Do ranks the columns of one task's rows.
func (j *likeliest[T]) Do(worker, task int) {
	cols := j.logits.cols
	buf := j.e.buffers(worker, cols)
	from, to := span(task, j.perTask, len(j.ids)/j.k)
	for r := from; r < to; r++ {
		x := j.logits.load(buf.at(1), r*cols, cols)
		ids, p := j.ids[r*j.k:(r+1)*j.k], j.p.native[r*j.k:(r+1)*j.k]
		rank(ids, x)
		others := apart(&j.e.vec, buf.at(0), x, ids, j.temperature)
		logZ := others.logZ(x, ids, j.temperature)
		for i, id := range ids {
			p[i] = T(math.Exp(float64(x[id])/j.temperature - logZ))
		}
		j.rest.native[r] = T(math.Exp(others.logit - logZ))
	}
}

// rank writes to ids the columns of the largest elements of x, in descending order; equal elements keep their order.
func rank[T vec.Float](ids []int32, x []T) {
	k := len(ids)
	for i := range ids {
		ids[i] = int32(i)
	}
	for i := k/2 - 1; i >= 0; i-- { // a heap whose root ranks last
		sink(ids, x, i)
	}
	for i := k; i < len(x); i++ {
		if x[i] > x[ids[0]] { // an equal one comes later in the row
			ids[0] = int32(i)
			sink(ids, x, 0)
		}
	}
	for end := k - 1; end > 0; end-- {
		ids[0], ids[end] = ids[end], ids[0]
		sink(ids[:end], x, 0)
	}
}

// sink moves element i of a heap down to its place.
func sink[T vec.Float](heap []int32, x []T, i int) {
	after := func(a, b int32) bool { return x[a] < x[b] || x[a] == x[b] && a > b }
	for {
		last := 2*i + 1
		if last >= len(heap) {
			return
		}
		if right := last + 1; right < len(heap) && after(heap[right], heap[last]) {
			last = right
		}
		if !after(heap[last], heap[i]) {
			return
		}
		heap[i], heap[last] = heap[last], heap[i]
		i = last
	}
}

// others describes the columns of a row outside a given set.
type others[T vec.Float] struct {
	exps  []T     // [V]: exponentials of their logits less the largest, 0 for the columns that are left out
	sum   float64 // of exps
	logit float64 // log-sum-exp of their logits; −Inf if there are none
}

// apart returns the columns outside ids of a row x of logits at a temperature, in the memory of buf.
func apart[T vec.Float](v *vec.Table[T], buf, x []T, ids []int32, temperature float64) others[T] {
	v.Scale(buf, x, T(1/temperature))
	for _, id := range ids {
		buf[id] = T(math.Inf(-1))
	}
	if len(ids) == len(x) {
		clear(buf)
		return others[T]{exps: buf, logit: math.Inf(-1)}
	}
	largest := v.Max(buf)
	if math.IsInf(float64(largest), -1) { // they have probability 0
		clear(buf)
		return others[T]{exps: buf, logit: math.Inf(-1)}
	}
	sum := float64(v.ExpSum(buf, buf, largest))
	return others[T]{exps: buf, sum: sum, logit: float64(largest) + math.Log(sum)}
}

// logZ returns the log-sum-exp of all logits of a row x at a temperature; o describes the columns outside ids.
func (o *others[T]) logZ(x []T, ids []int32, temperature float64) float64 {
	largest := o.logit
	for _, id := range ids {
		largest = max(largest, float64(x[id])/temperature)
	}
	sum := math.Exp(o.logit - largest)
	for _, id := range ids {
		sum += math.Exp(float64(x[id])/temperature - largest)
	}
	return largest + math.Log(sum)
}

// teacher is the part of a device.Teacher in CrossEntropy.
type teacher[T vec.Float] struct {
	ids           []int32
	p, rest, kl   view[T]
	k             int // columns of a row; 0 without a teacher
	temperature   float64
	scale, weight float64 // of the divergence's gradient, and of the cross-entropy's
}

func (e *engine[T]) teacher(o *device.Teacher) teacher[T] {
	if o == nil {
		return teacher[T]{weight: 1}
	}
	return teacher[T]{
		ids: o.IDs.I32(), p: e.view(o.P), rest: e.view(o.Rest), kl: e.view(o.KL), k: o.IDs.Cols(),
		temperature: o.Temperature, scale: o.Weight * o.Temperature, weight: 1 - o.Weight,
	}
}

// differ computes the divergence of row r, whose logits are x, and returns its gradient with respect to x/τ, in the
// memory of buf: q_i − p_i for each of the teacher's columns, and its share of q_rest − p_rest for every other column.
func (t *teacher[T]) differ(v *vec.Table[T], buf, x []T, r int) []T {
	ids, p := t.ids[r*t.k:(r+1)*t.k], t.p.native[r*t.k:(r+1)*t.k]
	rest := float64(t.rest.native[r])
	o := apart(v, buf, x, ids, t.temperature)
	logZ := o.logZ(x, ids, t.temperature)
	kl := 0.0
	if rest > 0 {
		kl = rest * (math.Log(rest) - (o.logit - logZ))
	}
	if o.sum > 0 {
		v.Scale(buf, buf, T((math.Exp(o.logit-logZ)-rest)/o.sum))
	}
	for i, id := range ids {
		at, p := float64(x[id])/t.temperature-logZ, float64(p[i])
		if p > 0 {
			kl += p * (math.Log(p) - at)
		}
		buf[id] = T(math.Exp(at) - p)
	}
	t.kl.native[r] = T(kl)
	return buf
}

// checkTeacher panics on a teacher that does not fit rows of logits.
func checkTeacher(op string, o device.LossOptions, rows int, forward, ref bool) {
	t := o.Teacher
	if forward || o.Given != nil || o.Labels != (tensor.RNG{}) {
		panic("cpu: " + op + ": a teacher needs a gradient, and all logits and targets")
	}
	dtype(op, "the teacher's columns", t.IDs, tensor.I32)
	shape(op, "the teacher's columns", t.IDs, rows, t.IDs.Cols())
	shape(op, "the teacher's probabilities", t.P, rows, t.IDs.Cols())
	wide(op, "the teacher's probabilities", t.P, ref)
	length(op, "the teacher's rest", t.Rest, rows)
	wide(op, "the teacher's rest", t.Rest, ref)
	length(op, "the divergence", t.KL, rows)
	wide(op, "the divergence", t.KL, ref)
}
