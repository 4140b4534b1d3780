package cpu

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// AdamW implements device.Device.
func (d *Device) AdamW(p, g, m, v *tensor.Tensor, o device.AdamW) {
	if updates("AdamW", p, g, m, v) {
		d.f64.runAdamW(p, g, m, v, o)
	} else {
		d.f32.runAdamW(p, g, m, v, o)
	}
}

// updates checks the tensors of an optimizer step and reports whether they belong to the reference mode.
func updates(op string, p *tensor.Tensor, rest ...*tensor.Tensor) bool {
	ref := reference(p)
	wide(op, "the parameter", p, ref)
	for _, t := range rest {
		length(op, "a state tensor", t, p.Len())
		wide(op, "a state tensor", t, ref)
	}
	return ref
}

// floor is the smallest product of update and parameter at which the parameter decays.
func floor[T vec.Float](cautious bool) T {
	if cautious {
		return 0
	}
	return T(math.Inf(-1))
}

type adamW[T vec.Float] struct {
	run        func(p, g, m, v []T, o *vec.AdamW[T])
	p, g, m, v []T
	step       vec.AdamW[T]
}

func (e *engine[T]) runAdamW(p, g, m, v *tensor.Tensor, o device.AdamW) {
	j := &e.adamW
	*j = adamW[T]{
		run: e.vec.AdamW, p: e.view(p).native, g: e.view(g).native, m: e.view(m).native, v: e.view(v).native,
		step: adamWStep[T](o),
	}
	if o.Coupled {
		j.run = e.vec.Adam
	}
	e.pool.Run(ceilDiv(len(j.p), chunk), j)
}

func adamWStep[T vec.Float](o device.AdamW) vec.AdamW[T] {
	decay := o.LR * o.Decay
	if o.Coupled {
		decay = o.Decay
	}
	return vec.AdamW[T]{
		Scale: T(o.Scale),
		Beta1: T(o.Beta1), Keep1: T(1 - o.Beta1),
		Beta2: T(o.Beta2), Keep2: T(1 - o.Beta2),
		Decay: T(decay), Rate: T(o.LR * o.Correct1),
		Correct2: T(o.Correct2), Eps: T(o.Eps), Floor: floor[T](o.Cautious),
	}
}

// Do updates one stretch of the parameter, in one pass over its memory.
func (j *adamW[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.p))
	j.run(j.p[from:to], j.g[from:to], j.m[from:to], j.v[from:to], &j.step)
}
