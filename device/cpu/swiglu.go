package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// SwiGLU implements device.Device.
func (d *Device) SwiGLU(act, gu *tensor.Tensor) {
	checkGated("SwiGLU", act, gu)
	if reference(act) {
		d.f64.gate(act, gu, swiGLU(d.f64))
	} else {
		d.f32.gate(act, gu, swiGLU(d.f32))
	}
}

// SwiGLUGrad implements device.Device.
func (d *Device) SwiGLUGrad(dgu, act, dact, gu *tensor.Tensor) {
	checkGatedGrad("SwiGLUGrad", dgu, act, dact, gu)
	if reference(dact) {
		d.f64.gateGrad(dgu, act, dact, gu, swiGLU(d.f64))
	} else {
		d.f32.gateGrad(dgu, act, dact, gu, swiGLU(d.f32))
	}
}

func swiGLU[T vec.Float](e *engine[T]) gate[T] {
	narrow := e.bf16()
	return gate[T]{e.vec.SwiGLU, e.vec.SwiGLUGrad, narrow.SwiGLU, narrow.SwiGLUGrad}
}
