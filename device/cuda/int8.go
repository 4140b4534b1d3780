//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/tensor"
)

// EncodeInt8 implements device.Device.
func (d *Device) EncodeInt8(codes, scales, src *tensor.Tensor, rng tensor.RNG, first uint64) {
	checkInt8("EncodeInt8", src, codes, scales)
	c := d.begin("int8", "encode_int8", src.DType())
	c.tensor(codes)
	c.tensor(scales)
	c.tensor(src)
	c.int(src.Len())
	c.random(rng)
	c.word(first)
	c.launch(scales.Len(), 32, 0)
}

// DecodeInt8 implements device.Device.
func (d *Device) DecodeInt8(dst, codes, scales *tensor.Tensor) {
	checkInt8("DecodeInt8", dst, codes, scales)
	c := d.begin("int8", "decode_int8", dst.DType())
	c.tensor(dst)
	c.tensor(codes)
	c.tensor(scales)
	c.int(dst.Len())
	c.perPack(dst.Len())
}

func checkInt8(op string, numbers, codes, scales *tensor.Tensor) {
	dtype(op, "the numbers", numbers, arithmetic(numbers))
	length(op, "codes", codes, numbers.Len())
	dtype(op, "codes", codes, tensor.U8)
	length(op, "scales", scales, ceilDiv(numbers.Len(), device.Block))
	dtype(op, "scales", scales, arithmetic(numbers))
}
