//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/tensor"
)

// Combine implements device.Device.
func (d *Device) Combine(dst, x, y *tensor.Tensor, o device.Combination) {
	const op = "Combine"
	shape(op, "x", x, dst.Rows(), dst.Cols())
	shape(op, "y", y, dst.Rows(), dst.Cols())
	dtype(op, "dst", dst, arithmetic(dst))
	dtype(op, "x", x, dst.DType())
	storage(op, "y", y, dst.DType())
	c := d.begin("combine", "combine", dst.DType(), define{"S", typeName(y.DType())})
	c.tensor(dst)
	c.tensor(x)
	c.tensor(y)
	c.int(dst.Len())
	c.int(dst.Cols())
	c.reals(o.X, o.Y, o.Diagonal).perVector(dst)
}
