//go:build cuda && linux

package cuda

import (
	"fmt"

	"anneal/tensor"
)

// Quantize implements device.Device.
func (d *Device) Quantize(dst, src *tensor.Tensor, format tensor.DType, scale float64) {
	const op = "Quantize"
	length(op, "dst", dst, src.Len())
	dtype(op, "dst", dst, tensor.BF16)
	storage(op, "src", src, tensor.F32)
	var top, least, magic float64
	switch format {
	case tensor.F8E4M3:
		top, least, magic = 448, 0x1p-6, 0x1.8p20
	case tensor.F8E5M2:
		top, least, magic = 57344, 0x1p-14, 0x1.8p21
	default:
		panic(fmt.Sprintf("cuda: Quantize: %v is not an FP8 format", format))
	}
	c := d.begin("quantize", "quantize", tensor.BF16, stored("S", src))
	c.tensor(dst)
	c.tensor(src)
	c.int(dst.Len())
	c.float(scale)
	c.float(top)
	c.float(least)
	c.float(magic)
	c.perPack(dst.Len())
}
