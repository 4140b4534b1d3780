package cpu

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Route implements device.Device.
func (d *Device) Route(weights, experts, logZ, sums, logits *tensor.Tensor, normalise bool) {
	const op = "Route"
	checkRoute(op, weights, experts, logZ, logits)
	length(op, "sums", sums, logits.Cols())
	wide(op, "sums", sums, reference(logits))
	if reference(logits) {
		d.f64.runRoute(weights, experts, logZ, sums, logits, normalise)
	} else {
		d.f32.runRoute(weights, experts, logZ, sums, logits, normalise)
	}
}

// RouteGrad implements device.Device.
func (d *Device) RouteGrad(dlogits, dweights, weights, experts, logZ, counts, logits *tensor.Tensor,
	o device.RouteOptions) {
	const op = "RouteGrad"
	checkRoute(op, weights, experts, logZ, logits)
	shape(op, "dlogits", dlogits, logits.Rows(), logits.Cols())
	wide(op, "dlogits", dlogits, reference(logits))
	shape(op, "dweights", dweights, weights.Rows(), weights.Cols())
	wide(op, "dweights", dweights, reference(logits))
	length(op, "counts", counts, logits.Cols())
	dtype(op, "counts", counts, tensor.I32)
	checkIDs(op, "the router", logits.Cols(), experts)
	if reference(logits) {
		d.f64.runRouteGrad(dlogits, dweights, weights, experts, logZ, counts, logits, o)
	} else {
		d.f32.runRouteGrad(dlogits, dweights, weights, experts, logZ, counts, logits, o)
	}
}

func checkRoute(op string, weights, experts, logZ, logits *tensor.Tensor) {
	shape(op, "weights", weights, logits.Rows(), min(weights.Cols(), logits.Cols()))
	wide(op, "weights", weights, reference(logits))
	shape(op, "experts", experts, logits.Rows(), weights.Cols())
	dtype(op, "experts", experts, tensor.I32)
	length(op, "log Z", logZ, logits.Rows())
	wide(op, "log Z", logZ, reference(logits))
	wide(op, "logits", logits, reference(logits))
}

type route[T vec.Float] struct {
	e                     *engine[T]
	weights, logZ, logits []T
	experts               []int32
	sums                  []T // one row per task
	k, cols               int
	normalise             bool
	rows, perTask         int
}

func (e *engine[T]) runRoute(weights, experts, logZ, sums, logits *tensor.Tensor, normalise bool) {
	j := &e.route
	*j = route[T]{
		e: e, weights: e.view(weights).native, logZ: e.view(logZ).native, logits: e.view(logits).native,
		experts: experts.I32(), k: weights.Cols(), cols: logits.Cols(), normalise: normalise, rows: logits.Rows(),
	}
	e.reserve(j.cols)
	var tasks int
	j.perTask, tasks = sumTasks(j.rows)
	j.sums = e.partials(tasks, j.cols)
	e.pool.Run(tasks, j)
	total := e.view(sums).native
	for t := range tasks {
		e.vec.Add(total, j.sums[t*j.cols:][:j.cols])
	}
}

// Do routes the tokens of one task.
func (j *route[T]) Do(worker, task int) {
	p := j.e.scratch[worker][:j.cols]
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		x := j.logits[r*j.cols:][:j.cols]
		top := j.e.vec.Max(x)
		sum := j.e.vec.ExpSum(p, x, top)
		j.logZ[r] = T(math.Log(float64(sum)) + float64(top))
		j.e.vec.Scale(p, p, 1/sum)
		j.e.vec.Add(j.sums[task*j.cols:][:j.cols], p)
		experts, weights := j.experts[r*j.k:][:j.k], j.weights[r*j.k:][:j.k]
		largest(experts, x)
		scale := T(1)
		if j.normalise {
			sum = 0
			for _, e := range experts {
				sum += p[e]
			}
			scale = 1 / sum
		}
		for i, e := range experts {
			weights[i] = p[e] * scale
		}
	}
}

// largest sets list to the numbers of the largest elements of x, the largest first, and among equals the lower number
// first. NaN counts as −Inf.
func largest[T vec.Float](list []int32, x []T) {
	for i := range x {
		at := min(i, len(list))
		for at > 0 && more(x[i], x[list[at-1]]) {
			at--
		}
		if at < len(list) {
			copy(list[at+1:min(i+1, len(list))], list[at:])
			list[at] = int32(i)
		}
	}
}

// more reports a > b, where NaN counts as −Inf.
func more[T vec.Float](a, b T) bool { return a > b || b != b && a > T(math.Inf(-1)) }

type routeGrad[T vec.Float] struct {
	e                                        *engine[T]
	dlogits, dweights, weights, logZ, logits []T
	experts, counts                          []int32
	k, cols                                  int
	o                                        device.RouteOptions
	rows, perTask                            int
}

func (e *engine[T]) runRouteGrad(dlogits, dweights, weights, experts, logZ, counts, logits *tensor.Tensor,
	o device.RouteOptions) {
	j := &e.routeGrad
	*j = routeGrad[T]{
		e: e, dlogits: e.view(dlogits).native, dweights: e.view(dweights).native, weights: e.view(weights).native,
		logZ: e.view(logZ).native, logits: e.view(logits).native, experts: experts.I32(), counts: counts.I32(),
		k: weights.Cols(), cols: logits.Cols(), o: o, rows: logits.Rows(),
	}
	e.reserve(j.cols)
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, j.cols)
	e.pool.Run(tasks, j)
}

// Do computes the gradients of the logits of one task's tokens: those of p first, then p·(dp − Σ p·dp).
func (j *routeGrad[T]) Do(worker, task int) {
	p := j.e.scratch[worker][:j.cols]
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		dp := j.dlogits[r*j.cols:][:j.cols]
		j.e.vec.ExpSum(p, j.logits[r*j.cols:][:j.cols], j.logZ[r])
		for i, n := range j.counts {
			dp[i] = T(j.o.Balance) * T(n)
		}
		experts, weights, dweights := j.experts[r*j.k:][:j.k], j.weights[r*j.k:][:j.k], j.dweights[r*j.k:][:j.k]
		scale, mean := T(1), T(0)
		if j.o.Normalise {
			var sum T
			for i, e := range experts {
				sum += p[e]
				mean += weights[i] * dweights[i]
			}
			scale = 1 / sum
		}
		for i, e := range experts {
			dp[e] += (dweights[i] - mean) * scale
		}
		shift := 2*T(j.o.ZLoss)*j.logZ[r] - j.e.vec.Dot(p, dp)
		for i := range dp {
			dp[i] = p[i] * (dp[i] + shift)
		}
	}
}
