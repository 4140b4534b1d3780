//go:build cuda && linux

package cuda

import "anneal/tensor"

// WeightNorm implements device.Device.
func (d *Device) WeightNorm(v, gain *tensor.Tensor) {
	const op = "WeightNorm"
	storage(op, "v", v, arithmetic(v))
	checkWide(op, "gain", gain, v.Rows(), arithmetic(v))
	c := d.begin("weightnorm", "weight_norm", v.DType(), stored("S", v))
	c.tensor(v)
	c.tensor(gain)
	c.int(v.Cols())
	c.launch(v.Rows(), rowThreads(v.Cols(), normThreads), 0)
}

// WeightNormGrad implements device.Device.
func (d *Device) WeightNormGrad(dv, dgain, v, gain *tensor.Tensor) {
	const op = "WeightNormGrad"
	storage(op, "v", v, arithmetic(v))
	storage(op, "dv", dv, arithmetic(v))
	shape(op, "dv", dv, v.Rows(), v.Cols())
	checkWide(op, "gain", gain, v.Rows(), arithmetic(v))
	checkWide(op, "dgain", dgain, v.Rows(), arithmetic(v))
	c := d.begin("weightnorm", "weight_norm_grad", v.DType(), stored("S", dv))
	c.tensor(dv)
	c.tensor(dgain)
	c.tensor(v)
	c.tensor(gain)
	c.int(v.Cols())
	c.launch(v.Rows(), rowThreads(v.Cols(), normThreads), 0)
}
