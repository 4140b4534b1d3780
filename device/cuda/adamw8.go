//go:build cuda && linux

package cuda

import (
	"encoding/binary"
	"fmt"
	"math"

	"anneal/device"
	"anneal/tensor"
)

// adamW8Elements is the number of elements of a block of 8 warps: 4 blocks of moments per warp.
const adamW8Elements = 8 * 4 * device.Block

// AdamW8 implements device.Device.
func (d *Device) AdamW8(p, g, m, mTop, v, vTop *tensor.Tensor, o device.AdamW) {
	const op = "AdamW8"
	dtype(op, "the parameter", p, arithmetic(p))
	length(op, "the gradient", g, p.Len())
	dtype(op, "the gradient", g, p.DType())
	for _, t := range []*tensor.Tensor{m, v} {
		length(op, "a moment", t, p.Len())
		dtype(op, "a moment", t, tensor.U8)
	}
	for _, t := range []*tensor.Tensor{mTop, vTop} {
		length(op, "largest magnitudes", t, ceilDiv(p.Len(), device.Block))
		dtype(op, "largest magnitudes", t, p.DType())
	}
	if o.Coupled {
		panic(fmt.Sprintf("cuda: %s: coupled decay is not supported", op))
	}
	if d.dynamic8 == 0 {
		d.dynamic8 = d.keep("8-bit numbers", dynamic8())
	}
	c := d.begin("adamw8", "adamw8", p.DType())
	for _, t := range []*tensor.Tensor{p, g, m, mTop, v, vTop} {
		c.tensor(t)
	}
	c.int(p.Len())
	c.pointer(d.dynamic8)
	c.adamW(o).launch(ceilDiv(p.Len(), adamW8Elements), 256, 0)
}

// dynamic8 returns the numbers of the codes of m and of v, [2, 256] in F32.
func dynamic8() (data []byte) {
	for _, signed := range []bool{true, false} {
		for _, x := range tensor.Dynamic8(signed) {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	}
	return data
}
