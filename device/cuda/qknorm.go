//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// qkThreads is the number of threads of a block; qkLanes of them share a head.
const qkThreads = 128

// QKNorm implements device.Device.
func (d *Device) QKNorm(qkv, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads, eps float64) {
	checkQKNorm("QKNorm", qkv, xhat, rstd, gainQ, gainK, heads)
	norms, lanes := heads.Q+heads.KV, qkLanes(heads.Size)
	c := d.begin("qknorm", "qk_norm", qkv.DType(), stored("S", xhat))
	c.tensor(qkv)
	c.tensor(xhat)
	c.tensor(rstd)
	c.tensor(gainQ)
	c.tensor(gainK)
	c.int(qkv.Rows())
	c.int(heads.Cols())
	c.int(norms)
	c.int(heads.Q)
	c.int(heads.Size)
	c.int(lanes)
	c.double(eps)
	c.launch(ceilDiv(qkv.Rows()*norms*lanes, qkThreads), qkThreads, 0)
}

// QKNormGrad implements device.Device. Scratch holds the sums for both gains of each stretch of rows.
func (d *Device) QKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads) {
	const op = "QKNormGrad"
	checkQKNorm(op, dqkv, xhat, rstd, gainQ, gainK, heads)
	wide, lanes := arithmetic(dqkv), qkLanes(heads.Size)
	checkWide(op, "dgainQ", dgainQ, heads.Size, wide)
	checkWide(op, "dgainK", dgainK, heads.Size, wide)
	blocks, per := sumBlocks(dqkv.Rows())
	both := 2 * heads.Size
	sums := d.scratch(blocks * both * wide.Size())
	c := d.begin("qknorm", "qk_norm_grad", dqkv.DType(), stored("S", xhat))
	c.tensor(dqkv)
	c.pointer(sums)
	c.tensor(xhat)
	c.tensor(rstd)
	c.tensor(gainQ)
	c.tensor(gainK)
	c.int(dqkv.Rows())
	c.int(heads.Cols())
	c.int(heads.Q + heads.KV)
	c.int(heads.Q)
	c.int(heads.Size)
	c.int(lanes)
	c.int(per)
	c.launch(blocks, qkThreads, qkThreads/lanes*both*wide.Size())
	d.addColumns(dgainQ, sums, blocks, both)
	d.addColumns(dgainK, sums+driver.Pointer(heads.Size*wide.Size()), blocks, both)
}

// qkLanes returns the number of lanes per head: one per pack if that is a power of two, else the whole warp.
func qkLanes(size int) int {
	if n := size / pack; size%pack == 0 && n <= 32 && n&(n-1) == 0 {
		return n
	}
	return 32
}

func checkQKNorm(op string, qkv, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads) {
	rows, norms, wide := qkv.Rows(), heads.Q+heads.KV, arithmetic(qkv)
	shape(op, "qkv", qkv, rows, heads.Cols())
	shape(op, "xhat", xhat, rows, norms*heads.Size)
	shape(op, "rstd", rstd, rows, norms)
	storage(op, "qkv", qkv, wide)
	storage(op, "xhat", xhat, wide)
	dtype(op, "rstd", rstd, wide)
	checkWide(op, "gainQ", gainQ, heads.Size, wide)
	checkWide(op, "gainK", gainK, heads.Size, wide)
}
