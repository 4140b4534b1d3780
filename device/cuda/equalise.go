//go:build cuda && linux

package cuda

import "anneal/tensor"

// EqualiseRows implements device.Device.
func (d *Device) EqualiseRows(u, v *tensor.Tensor, beta float64) {
	const op = "EqualiseRows"
	dtype(op, "u", u, arithmetic(u))
	dtype(op, "v", v, u.DType())
	length(op, "v", v, u.Rows())
	c := d.begin("equalise", "equalise_rows", u.DType())
	c.tensor(u)
	c.tensor(v)
	c.int(u.Cols())
	c.double(beta)
	c.launch(u.Rows(), 256, 0)
}
