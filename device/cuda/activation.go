//go:build cuda && linux

package cuda

import "anneal/tensor"

// activate computes act = f(x), elementwise, where file and kernel name f.
func (d *Device) activate(op, file, kernel string, act, x *tensor.Tensor) {
	shape(op, "x", x, act.Rows(), act.Cols())
	storage(op, "act", act, arithmetic(act))
	storage(op, "x", x, arithmetic(act))
	c := d.begin(file, kernel, act.DType(), stored("S", x), stored("U", act))
	c.tensor(act)
	c.tensor(x)
	c.int(act.Len())
	c.perPack(act.Len())
}

// again panics unless act is nil or has the shape and storage of dact. A gradient kernel recomputes the activation
// into act.
func again(op string, act, dact *tensor.Tensor) {
	if act != nil {
		shape(op, "act", act, dact.Rows(), dact.Cols())
		dtype(op, "act", act, dact.DType())
	}
}

// activateGrad computes dx = f'(x)·dact, elementwise, and act = f(x) unless act is nil.
func (d *Device) activateGrad(op, file, kernel string, dx, act, dact, x *tensor.Tensor) {
	shape(op, "dact", dact, dx.Rows(), dx.Cols())
	shape(op, "x", x, dx.Rows(), dx.Cols())
	storage(op, "dx", dx, arithmetic(dx))
	storage(op, "dact", dact, arithmetic(dx))
	storage(op, "x", x, arithmetic(dx))
	again(op, act, dact)
	c := d.begin(file, kernel, dx.DType(), stored("S", x), stored("U", dact))
	c.tensor(dx)
	c.tensor(act)
	c.tensor(dact)
	c.tensor(x)
	c.int(dx.Len())
	c.perPack(dx.Len())
}

// ReLUSquared implements device.Device.
func (d *Device) ReLUSquared(act, x *tensor.Tensor) {
	d.activate("ReLUSquared", "relusquared", "relu_squared", act, x)
}

// ReLUSquaredGrad implements device.Device.
func (d *Device) ReLUSquaredGrad(dx, act, dact, x *tensor.Tensor) {
	d.activateGrad("ReLUSquaredGrad", "relusquared", "relu_squared_grad", dx, act, dact, x)
}

// GELU implements device.Device.
func (d *Device) GELU(act, x *tensor.Tensor) { d.activate("GELU", "gelu", "gelu", act, x) }

// GELUGrad implements device.Device.
func (d *Device) GELUGrad(dx, act, dact, x *tensor.Tensor) {
	d.activateGrad("GELUGrad", "gelu", "gelu_grad", dx, act, dact, x)
}

// Softcap implements device.Device.
func (d *Device) Softcap(x *tensor.Tensor, limit float64) {
	storage("Softcap", "x", x, arithmetic(x))
	c := d.begin("softcap", "softcap", x.DType())
	c.tensor(x)
	c.int(x.Len())
	c.real(limit)
	c.perPack(x.Len())
}
