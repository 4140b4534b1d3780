//go:build cuda && linux

package cuda

import "anneal/tensor"

// QuantizeBlocks implements device.Device.
func (d *Device) QuantizeBlocks(dst, src *tensor.Tensor, rows, cols int) {
	const op, warps = "QuantizeBlocks", 8
	length(op, "dst", dst, src.Len())
	dtype(op, "dst", dst, tensor.BF16)
	storage(op, "src", src, tensor.F32)
	c := d.begin("quantizeblocks", "quantize_blocks", tensor.BF16, stored("S", src))
	c.tensor(dst)
	c.tensor(src)
	c.int(src.Rows())
	c.int(src.Cols())
	c.int(rows)
	c.int(cols)
	c.launch(ceilDiv(ceilDiv(src.Rows(), rows)*ceilDiv(src.Cols(), cols), warps), 32*warps, 0)
}
