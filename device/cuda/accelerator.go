//go:build cuda && linux

package cuda

import (
	"fmt"

	"anneal/device"
	"anneal/tensor"
)

var _ device.Accelerator = (*Device)(nil)

// Kernels implements device.Accelerator.
func (d *Device) Kernels() string { return fmt.Sprintf("cuda sm_%d", d.card.Capability) }

// Peak implements device.Accelerator.
func (d *Device) Peak(operand tensor.DType) float64 {
	half, single := d.card.Peak()
	switch operand {
	case tensor.BF16, tensor.F16:
		return half / 1e9
	case tensor.TF32:
		return half / 2e9
	}
	return single / 1e9
}

// FreeMemory implements device.Accelerator.
func (d *Device) FreeMemory() int64 {
	var free int
	d.do(func() (err error) {
		free, _, err = d.driver.MemInfo()
		return err
	})
	return int64(free)
}
