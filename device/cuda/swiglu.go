//go:build cuda && linux

package cuda

import "anneal/tensor"

// SwiGLU implements device.Device.
func (d *Device) SwiGLU(act, gu *tensor.Tensor) {
	const op = "SwiGLU"
	shape(op, "gu", gu, act.Rows(), 2*act.Cols())
	storage(op, "act", act, arithmetic(act))
	storage(op, "gu", gu, arithmetic(act))
	c := d.begin("swiglu", "swiglu", act.DType(), stored("S", gu), stored("U", act))
	c.tensor(act)
	c.tensor(gu)
	c.int(act.Cols())
	c.perRowPack(act.Rows(), act.Cols())
}

// SwiGLUGrad implements device.Device.
func (d *Device) SwiGLUGrad(dgu, act, dact, gu *tensor.Tensor) {
	const op = "SwiGLUGrad"
	shape(op, "gu", gu, dact.Rows(), 2*dact.Cols())
	shape(op, "dgu", dgu, dact.Rows(), 2*dact.Cols())
	storage(op, "dgu", dgu, arithmetic(dact))
	storage(op, "dact", dact, arithmetic(dact))
	storage(op, "gu", gu, arithmetic(dact))
	again(op, act, dact)
	c := d.begin("swiglu", "swiglu_grad", dgu.DType(), stored("S", gu), stored("U", dact))
	c.tensor(dgu)
	c.tensor(act)
	c.tensor(dact)
	c.tensor(gu)
	c.int(dact.Cols())
	c.perRowPack(dact.Rows(), dact.Cols())
}
