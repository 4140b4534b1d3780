package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Sophia implements device.Device.
func (d *Device) Sophia(p, g, m, h *tensor.Tensor, o device.Sophia) int {
	if updates("Sophia", p, g, m, h) {
		return d.f64.runSophia(p, g, m, h, o)
	}
	return d.f32.runSophia(p, g, m, h, o)
}

type sophia[T vec.Float] struct {
	vec        *vec.Table[T]
	p, g, m, h []T
	step       vec.Sophia[T]
	inside     []float64 // one per task
}

func (e *engine[T]) runSophia(p, g, m, h *tensor.Tensor, o device.Sophia) int {
	j := &e.sophia
	tasks := ceilDiv(p.Len(), chunk)
	*j = sophia[T]{
		vec: &e.vec, p: e.view(p).native, g: e.view(g).native, m: e.view(m).native, h: e.view(h).native,
		inside: e.taskSums(tasks),
	}
	j.step = vec.Sophia[T]{
		Beta: T(o.Beta1), Keep: T((1 - o.Beta1) * o.Scale), Rho: T(o.Rho), Tiny: 1e-15,
		Rate: T(o.LR), Decay: T(o.LR * o.Decay), Floor: floor[T](o.Cautious), One: 1, MinusOne: -1,
	}
	e.pool.Run(tasks, j)
	inside := 0.0
	for _, n := range j.inside {
		inside += n
	}
	return int(inside)
}

// Do updates one stretch of the parameter, in one pass over its memory.
func (j *sophia[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.p))
	j.inside[task] = float64(j.vec.Sophia(j.p[from:to], j.g[from:to], j.m[from:to], j.h[from:to], &j.step))
}

// MeanSquare implements device.Device.
func (d *Device) MeanSquare(h, g *tensor.Tensor, beta, weight float64) {
	if updates("MeanSquare", h, g) {
		d.f64.runMeanSquare(h, g, beta, weight)
	} else {
		d.f32.runMeanSquare(h, g, beta, weight)
	}
}

type meanSquare[T vec.Float] struct {
	vec          *vec.Table[T]
	h, g         []T
	beta, weight T
}

func (e *engine[T]) runMeanSquare(h, g *tensor.Tensor, beta, weight float64) {
	j := &e.meanSquare
	*j = meanSquare[T]{vec: &e.vec, h: e.view(h).native, g: e.view(g).native, beta: T(beta), weight: T(weight)}
	e.pool.Run(ceilDiv(len(j.h), chunk), j)
}

// Do updates one stretch of the mean.
func (j *meanSquare[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.h))
	j.vec.MeanSquare(j.h[from:to], j.g[from:to], j.beta, j.weight)
}
