package cpu

import (
	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// AdEMAMix implements device.Device.
func (d *Device) AdEMAMix(p, g, m1, m2, v *tensor.Tensor, o device.AdEMAMix) {
	if updates("AdEMAMix", p, g, m1, m2, v) {
		d.f64.runAdEMAMix(p, g, m1, m2, v, o)
	} else {
		d.f32.runAdEMAMix(p, g, m1, m2, v, o)
	}
}

type adEMAMix[T vec.Float] struct {
	vec             *vec.Table[T]
	p, g, m1, m2, v []T
	step            vec.AdEMAMix[T]
}

func (e *engine[T]) runAdEMAMix(p, g, m1, m2, v *tensor.Tensor, o device.AdEMAMix) {
	j := &e.adEMAMix
	*j = adEMAMix[T]{
		vec: &e.vec, p: e.view(p).native, g: e.view(g).native,
		m1: e.view(m1).native, m2: e.view(m2).native, v: e.view(v).native,
	}
	j.step = vec.AdEMAMix[T]{
		Scale: T(o.Scale),
		Beta1: T(o.Beta1), Keep1: T(1 - o.Beta1),
		Beta2: T(o.Beta2), Keep2: T(1 - o.Beta2),
		Beta3: T(o.Beta3), Keep3: T(1 - o.Beta3),
		Rate1: T(o.LR * o.Correct1), Rate2: T(o.LR * o.Alpha),
		Correct2: T(o.Correct2), Eps: T(o.Eps), Decay: T(o.LR * o.Decay), Floor: floor[T](o.Cautious),
	}
	e.pool.Run(ceilDiv(len(j.p), chunk), j)
}

// Do updates one stretch of the parameter.
func (j *adEMAMix[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.p))
	j.vec.AdEMAMix(j.p[from:to], j.g[from:to], j.m1[from:to], j.m2[from:to], j.v[from:to], &j.step)
}
