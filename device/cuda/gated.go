//go:build cuda && linux

package cuda

import "anneal/tensor"

// gate computes act = f(gate, up), where file and kernel name f.
func (d *Device) gate(op, file, kernel string, act, gu *tensor.Tensor) {
	shape(op, "gu", gu, act.Rows(), 2*act.Cols())
	storage(op, "act", act, arithmetic(act))
	storage(op, "gu", gu, arithmetic(act))
	c := d.begin(file, kernel, act.DType(), stored("S", gu), stored("U", act))
	c.tensor(act)
	c.tensor(gu)
	c.int(act.Cols())
	c.perRowPack(act.Rows(), act.Cols())
}

// gateGrad computes dgu from dact and gu, and act = f(gate, up) unless act is nil.
func (d *Device) gateGrad(op, file, kernel string, dgu, act, dact, gu *tensor.Tensor) {
	shape(op, "gu", gu, dact.Rows(), 2*dact.Cols())
	shape(op, "dgu", dgu, dact.Rows(), 2*dact.Cols())
	storage(op, "dgu", dgu, arithmetic(dact))
	storage(op, "dact", dact, arithmetic(dact))
	storage(op, "gu", gu, arithmetic(dact))
	again(op, act, dact)
	c := d.begin(file, kernel, dgu.DType(), stored("S", gu), stored("U", dact))
	c.tensor(dgu)
	c.tensor(act)
	c.tensor(dact)
	c.tensor(gu)
	c.int(dact.Cols())
	c.perRowPack(dact.Rows(), dact.Cols())
}

// SwiGLU implements device.Device.
func (d *Device) SwiGLU(act, gu *tensor.Tensor) { d.gate("SwiGLU", "swiglu", "swiglu", act, gu) }

// SwiGLUGrad implements device.Device.
func (d *Device) SwiGLUGrad(dgu, act, dact, gu *tensor.Tensor) {
	d.gateGrad("SwiGLUGrad", "swiglu", "swiglu_grad", dgu, act, dact, gu)
}

// GeGLU implements device.Device.
func (d *Device) GeGLU(act, gu *tensor.Tensor) { d.gate("GeGLU", "geglu", "geglu", act, gu) }

// GeGLUGrad implements device.Device.
func (d *Device) GeGLUGrad(dgu, act, dact, gu *tensor.Tensor) {
	d.gateGrad("GeGLUGrad", "geglu", "geglu_grad", dgu, act, dact, gu)
}
