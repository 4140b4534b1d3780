//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/tensor"
)

// ShortConv implements device.Device. It has no kernel yet: a run that needs it is refused (config.CheckKernels).
func (d *Device) ShortConv(out, x, taps *tensor.Tensor, mask device.Mask) {
	panic("cuda: ShortConv has no kernel")
}

// ShortConvGrad implements device.Device; see ShortConv.
func (d *Device) ShortConvGrad(dx, dtaps, dout, x, taps *tensor.Tensor, mask device.Mask) {
	panic("cuda: ShortConvGrad has no kernel")
}
