package cpu

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// AdamW implements device.Device.
func (d *Device) AdamW(p, g, m, v *tensor.Tensor, o device.AdamW) {
	const op = "AdamW"
	n, ref := p.Len(), reference(p)
	length(op, "g", g, n)
	length(op, "m", m, n)
	length(op, "v", v, n)
	wide(op, "p", p, ref)
	wide(op, "g", g, ref)
	wide(op, "m", m, ref)
	wide(op, "v", v, ref)
	if ref {
		d.f64.runAdamW(p, g, m, v, o)
	} else {
		d.f32.runAdamW(p, g, m, v, o)
	}
}

type adamW[T vec.Float] struct {
	vec        *vec.Table[T]
	p, g, m, v []T
	step       vec.AdamW[T]
}

func (e *engine[T]) runAdamW(p, g, m, v *tensor.Tensor, o device.AdamW) {
	j := &e.adamW
	*j = adamW[T]{vec: &e.vec, p: e.view(p).native, g: e.view(g).native, m: e.view(m).native, v: e.view(v).native}
	j.step = vec.AdamW[T]{
		Scale: T(o.Scale),
		Beta1: T(o.Beta1), Keep1: T(1 - o.Beta1),
		Beta2: T(o.Beta2), Keep2: T(1 - o.Beta2),
		Decay: T(o.LR * o.Decay), Rate: T(o.LR * o.Correct1),
		Correct2: T(o.Correct2), Eps: T(o.Eps), Floor: floor[T](o.Cautious),
	}
	e.pool.Run(ceilDiv(len(j.p), chunk), j)
}

// floor is the least product of update and parameter at which the parameter decays.
func floor[T vec.Float](cautious bool) T {
	if cautious {
		return 0
	}
	return T(math.Inf(-1))
}

// Do updates one stretch of the parameter, in one pass over its memory.
func (j *adamW[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.p))
	j.vec.AdamW(j.p[from:to], j.g[from:to], j.m[from:to], j.v[from:to], &j.step)
}
