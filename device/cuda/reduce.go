//go:build cuda && linux

package cuda

import (
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// stretch is the number of elements per block of reduce.cu, which has the same constant.
const stretch = 1 << 15

// Sum implements device.Device.
func (d *Device) Sum(t *tensor.Tensor) float64 { return d.reduce("sum", "join_sums", t) }

// SumSquares implements device.Device.
func (d *Device) SumSquares(list ...*tensor.Tensor) float64 {
	return d.reduce("sum_squares", "join_sums", list...)
}

// MaxAbs implements device.Device.
func (d *Device) MaxAbs(t *tensor.Tensor) float64 { return d.reduce("max_abs", "join_max", t) }

// reduce runs a kernel of reduce.cu on each tensor and another on the results, and waits for one number. Scratch
// holds one number per stretch.
func (d *Device) reduce(kernel, join string, list ...*tensor.Tensor) float64 {
	blocks := 0
	for _, t := range list {
		blocks += ceilDiv(t.Len(), stretch)
	}
	parts := d.scratch(8 * blocks)
	at := parts
	for _, t := range list {
		n := ceilDiv(t.Len(), stretch)
		c := d.begin("reduce", kernel, t.DType())
		c.pointer(at)
		c.tensor(t)
		c.int(t.Len())
		c.launch(n, packThreads, 0)
		at += driver.Pointer(8 * n)
	}
	answer := d.answers(1)
	c := d.begin("reduce", join, tensor.F32)
	c.pointer(answer)
	c.pointer(parts)
	c.int(blocks)
	c.launch(1, 1024, 0)
	return d.collect(1)[0]
}
