package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// GELU implements device.Device.
func (d *Device) GELU(act, x *tensor.Tensor) {
	checkActivation("GELU", act, x)
	if reference(act) {
		d.f64.activate(act, x, gelu(d.f64))
	} else {
		d.f32.activate(act, x, gelu(d.f32))
	}
}

// GELUGrad implements device.Device.
func (d *Device) GELUGrad(dx, act, dact, x *tensor.Tensor) {
	checkActivationGrad("GELUGrad", dx, act, dact, x)
	if reference(dx) {
		d.f64.activateGrad(dx, act, dact, x, gelu(d.f64))
	} else {
		d.f32.activateGrad(dx, act, dact, x, gelu(d.f32))
	}
}

func gelu[T vec.Float](e *engine[T]) activate[T] {
	narrow := e.bf16()
	return activate[T]{e.vec.GELU, e.vec.GELUGrad, narrow.GELU, narrow.GELUGrad}
}
