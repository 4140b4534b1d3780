//go:build cuda && linux

package cuda

import "anneal/tensor"

// QuantizeBlocks implements device.Device. Runs that need it are refused on cards before they begin.
func (d *Device) QuantizeBlocks(dst, src *tensor.Tensor, rows, cols int) {
	panic("cuda: QuantizeBlocks: there is no kernel")
}
