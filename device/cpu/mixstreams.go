package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// MixStreams implements device.Device.
func (d *Device) MixStreams(x, kept, y, weights *tensor.Tensor) {
	checkMix("MixStreams", "x", x, kept, y, weights)
	if reference(x) {
		d.f64.runMixStreams(x, kept, y, weights)
	} else {
		d.f32.runMixStreams(x, kept, y, weights)
	}
}

// MixStreamsGrad implements device.Device.
func (d *Device) MixStreamsGrad(dx, dy, dweights, kept, y, weights *tensor.Tensor) {
	const op = "MixStreamsGrad"
	checkMix(op, "dx", dx, kept, y, weights)
	shape(op, "dy", dy, dx.Rows(), dx.Cols())
	wide(op, "dy", dy, reference(dx))
	length(op, "dweights", dweights, 2)
	wide(op, "dweights", dweights, reference(dx))
	if reference(dx) {
		d.f64.runMixStreamsGrad(dx, dy, dweights, kept, y, weights)
	} else {
		d.f32.runMixStreamsGrad(dx, dy, dweights, kept, y, weights)
	}
}

func checkMix(op, name string, x, kept, y, weights *tensor.Tensor) {
	ref := reference(x)
	wide(op, name, x, ref)
	shape(op, "y", y, x.Rows(), x.Cols())
	wide(op, "y", y, ref)
	length(op, "weights", weights, 2)
	wide(op, "weights", weights, ref)
	if kept != nil {
		shape(op, "kept", kept, x.Rows(), x.Cols())
		storage(op, "kept", kept, ref)
	}
}

type mixStreams[T vec.Float] struct {
	e             *engine[T]
	x, y, weights []T
	kept          view[T]
	keep          bool
}

func (e *engine[T]) runMixStreams(x, kept, y, weights *tensor.Tensor) {
	j := &e.mix
	*j = mixStreams[T]{e: e, x: e.view(x).native, y: e.view(y).native, weights: e.view(weights).native}
	if kept != nil {
		j.keep, j.kept = true, e.view(kept)
	}
	e.pool.Run(ceilDiv(len(j.x), chunk), j)
}

// Do mixes one stretch.
func (j *mixStreams[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.x))
	for i := from; i < to; i += tile {
		x := j.x[i:min(i+tile, to)]
		if j.keep && j.kept.native != nil {
			copy(j.kept.native[i:], x)
		} else if j.keep {
			j.kept.store(x, i)
		}
		j.e.vec.Mix(x, x, j.y[i:], j.weights[0], j.weights[1])
	}
}

type mixStreamsGrad[T vec.Float] struct {
	e                  *engine[T]
	dx, dy, y, weights []T
	kept               view[T]
	sums               []float64 // per task, those of both weights
}

func (e *engine[T]) runMixStreamsGrad(dx, dy, dweights, kept, y, weights *tensor.Tensor) {
	j := &e.mixGrad
	*j = mixStreamsGrad[T]{
		e: e, dx: e.view(dx).native, dy: e.view(dy).native, y: e.view(y).native, weights: e.view(weights).native,
		kept: e.view(kept),
	}
	tasks := ceilDiv(len(j.dx), chunk)
	j.sums = e.taskSums(2 * tasks)
	e.reserve(tile)
	e.pool.Run(tasks, j)
	var ofX, ofY float64
	for t := range tasks {
		ofX += j.sums[2*t]
		ofY += j.sums[2*t+1]
	}
	dw := e.view(dweights).native
	dw[0] += T(ofX)
	dw[1] += T(ofY)
}

// Do turns the gradients of one stretch.
func (j *mixStreamsGrad[T]) Do(worker, task int) {
	v := &j.e.vec
	var ofX, ofY float64
	from, to := span(task, chunk, len(j.dx))
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		dx, y := j.dx[i:i+n], j.y[i:i+n]
		ofX += float64(v.Dot(dx, j.kept.load(j.e.scratch[worker], i, n)))
		ofY += float64(v.Dot(dx, y))
		v.Axpy(j.dy[i:i+n], dx, j.weights[1])
		v.Scale(dx, dx, j.weights[0])
	}
	j.sums[2*task], j.sums[2*task+1] = ofX, ofY
}
