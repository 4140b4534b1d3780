//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/tensor"
)

// RoPE implements device.Device.
func (d *Device) RoPE(qkv, cos, sin, pos *tensor.Tensor, heads device.Heads, inverse bool) {
	const op = "RoPE"
	rows, half, wide := qkv.Rows(), heads.Size/2, arithmetic(qkv)
	shape(op, "qkv", qkv, rows, heads.Cols())
	shape(op, "cos", cos, cos.Rows(), half)
	shape(op, "sin", sin, cos.Rows(), half)
	length(op, "pos", pos, rows)
	storage(op, "qkv", qkv, wide)
	dtype(op, "cos", cos, wide)
	dtype(op, "sin", sin, wide)
	dtype(op, "pos", pos, tensor.I32)
	interleaved, sign := 0, 1.0
	if heads.Interleaved {
		interleaved = 1
	}
	if inverse {
		sign = -1
	}
	c := d.begin("rope", "rope", qkv.DType())
	c.tensor(qkv)
	c.tensor(cos)
	c.tensor(sin)
	c.tensor(pos)
	c.int(heads.Cols())
	c.int(heads.Q + heads.KV)
	c.int(half)
	c.int(cos.Rows())
	c.int(interleaved)
	c.real(sign)
	c.launch(rows, rowThreads((heads.Q+heads.KV)*wholePacks(half), packThreads), 0)
}
