package cpu

import "anneal/tensor"

// GELU implements device.Device.
func (d *Device) GELU(act, x *tensor.Tensor) {
	checkActivation("GELU", act, x)
	if reference(act) {
		d.f64.activate(act, x, d.f64.vec.GELU, nil)
	} else {
		d.f32.activate(act, x, d.f32.vec.GELU, d.f32.bf16().GELU)
	}
}

// GELUGrad implements device.Device.
func (d *Device) GELUGrad(dx, dact, x *tensor.Tensor) {
	checkActivationGrad("GELUGrad", dx, dact, x)
	if reference(dx) {
		d.f64.activateGrad(dx, dact, x, d.f64.vec.GELUGrad, nil)
	} else {
		d.f32.activateGrad(dx, dact, x, d.f32.vec.GELUGrad, d.f32.bf16().GELUGrad)
	}
}
