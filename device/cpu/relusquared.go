package cpu

import "anneal/tensor"

// ReLUSquared implements device.Device.
func (d *Device) ReLUSquared(act, x *tensor.Tensor) {
	checkActivation("ReLUSquared", act, x)
	if reference(act) {
		d.f64.activate(act, x, d.f64.vec.ReLUSquared, nil)
	} else {
		d.f32.activate(act, x, d.f32.vec.ReLUSquared, d.f32.bf16().ReLUSquared)
	}
}

// ReLUSquaredGrad implements device.Device.
func (d *Device) ReLUSquaredGrad(dx, dact, x *tensor.Tensor) {
	checkActivationGrad("ReLUSquaredGrad", dx, dact, x)
	if reference(dx) {
		d.f64.activateGrad(dx, dact, x, d.f64.vec.ReLUSquaredGrad, nil)
	} else {
		d.f32.activateGrad(dx, dact, x, d.f32.vec.ReLUSquaredGrad, d.f32.bf16().ReLUSquaredGrad)
	}
}
