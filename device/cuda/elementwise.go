//go:build cuda && linux

package cuda

import (
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// Copy implements device.Device.
func (d *Device) Copy(dst, src *tensor.Tensor) {
	length("Copy", "src", src, dst.Len())
	switch {
	case dst.Len() == 0:
	case dst.DType() == src.DType():
		d.do(func() error {
			return d.driver.CopyWithin(driver.Pointer(dst.Pointer()), driver.Pointer(src.Pointer()),
				dst.Bytes(), d.stream)
		})
	default:
		d.elementwise("convert", dst, src)
	}
}

// Add implements device.Device.
func (d *Device) Add(dst, src *tensor.Tensor) {
	length("Add", "src", src, dst.Len())
	d.elementwise("add", dst, src)
}

// elementwise runs a kernel on two tensors of any storage.
func (d *Device) elementwise(kernel string, dst, src *tensor.Tensor) {
	c := d.begin("elementwise", kernel, dst.DType(), stored("S", src), define{"W", widest(dst, src)})
	c.tensor(dst)
	c.tensor(src)
	c.int(dst.Len())
	c.perPack(dst.Len())
}

// widest returns the arithmetic type, as kernels name it, that holds the elements of both.
func widest(a, b *tensor.Tensor) string {
	if arithmetic(a) == tensor.F64 {
		return "double"
	}
	return typeName(arithmetic(b))
}

// Scale implements device.Device.
func (d *Device) Scale(t *tensor.Tensor, factor float64) {
	c := d.begin("elementwise", "scale", t.DType(), stored("S", t), define{"W", widest(t, t)})
	c.tensor(t)
	c.int(t.Len())
	c.real(factor)
	c.perPack(t.Len())
}

// Zero implements device.Device.
func (d *Device) Zero(t *tensor.Tensor) {
	if t.Len() == 0 {
		return
	}
	d.do(func() error { return d.driver.Set(driver.Pointer(t.Pointer()), 0, t.Bytes(), d.stream) })
}
