package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// GeGLU implements device.Device.
func (d *Device) GeGLU(act, gu *tensor.Tensor) {
	checkGated("GeGLU", act, gu)
	if reference(act) {
		d.f64.gate(act, gu, geGLU(d.f64))
	} else {
		d.f32.gate(act, gu, geGLU(d.f32))
	}
}

// GeGLUGrad implements device.Device.
func (d *Device) GeGLUGrad(dgu, act, dact, gu *tensor.Tensor) {
	checkGatedGrad("GeGLUGrad", dgu, act, dact, gu)
	if reference(dact) {
		d.f64.gateGrad(dgu, act, dact, gu, geGLU(d.f64))
	} else {
		d.f32.gateGrad(dgu, act, dact, gu, geGLU(d.f32))
	}
}

func geGLU[T vec.Float](e *engine[T]) gate[T] {
	narrow := e.bf16()
	return gate[T]{e.vec.GeGLU, e.vec.GeGLUGrad, narrow.GeGLU, narrow.GeGLUGrad}
}
