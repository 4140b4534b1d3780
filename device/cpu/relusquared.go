package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// ReLUSquared implements device.Device.
func (d *Device) ReLUSquared(act, x *tensor.Tensor) {
	checkActivation("ReLUSquared", act, x)
	if reference(act) {
		d.f64.activate(act, x, reluSquared(d.f64))
	} else {
		d.f32.activate(act, x, reluSquared(d.f32))
	}
}

// ReLUSquaredGrad implements device.Device.
func (d *Device) ReLUSquaredGrad(dx, act, dact, x *tensor.Tensor) {
	checkActivationGrad("ReLUSquaredGrad", dx, act, dact, x)
	if reference(dx) {
		d.f64.activateGrad(dx, act, dact, x, reluSquared(d.f64))
	} else {
		d.f32.activateGrad(dx, act, dact, x, reluSquared(d.f32))
	}
}

func reluSquared[T vec.Float](e *engine[T]) activate[T] {
	narrow := e.bf16()
	return activate[T]{e.vec.ReLUSquared, e.vec.ReLUSquaredGrad, narrow.ReLUSquared, narrow.ReLUSquaredGrad}
}
