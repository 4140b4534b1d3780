//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// Sum implements device.Device.
func (d *Device) Sum(t *tensor.Tensor) float64 { return d.reduce("sum", "join_sums", t) }

// SquareSums implements device.Device.
func (d *Device) SquareSums(sums []float64, list ...*tensor.Tensor) {
	d.reduceStretches("sum_squares", d.answers(len(sums)), list...)
	copy(sums, d.collect(len(sums)))
}

// MaxAbs implements device.Device.
func (d *Device) MaxAbs(t *tensor.Tensor) float64 { return d.reduce("max_abs", "join_max", t) }

// reduce runs a kernel of reduce.cu on t and another on its results, and waits for one number. Scratch holds one
// number per stretch.
func (d *Device) reduce(kernel, join string, t *tensor.Tensor) float64 {
	blocks := device.Stretches(t)
	parts := d.scratch(8 * blocks)
	d.reduceStretches(kernel, parts, t)
	answer := d.answers(1)
	c := d.begin("reduce", join, tensor.F32)
	c.pointer(answer)
	c.pointer(parts)
	c.int(blocks)
	c.launch(1, 1024, 0)
	return d.collect(1)[0]
}

// reduceStretches runs a kernel of reduce.cu on each tensor, which writes one number per stretch, a block of it.
func (d *Device) reduceStretches(kernel string, parts driver.Pointer, list ...*tensor.Tensor) {
	for _, t := range list {
		n := device.Stretches(t)
		c := d.begin("reduce", kernel, t.DType())
		c.pointer(parts)
		c.tensor(t)
		c.int(t.Len())
		c.launch(n, packThreads, 0)
		parts += driver.Pointer(8 * n)
	}
}
