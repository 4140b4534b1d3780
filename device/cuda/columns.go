//go:build cuda && linux

package cuda

import (
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// Kernels that work row by row or element by element take packs: eight neighbours, what a thread has at a time.
const (
	pack        = 8
	packThreads = 256 // of a block, where there is no row to say how many
)

// rowThreads returns how many threads share a row of so many elements: one for each pack, in whole warps, at most limit.
func rowThreads(cols, limit int) int { return min(ceilDiv(cols, 32*pack)*32, limit) }

// perPack launches a kernel whose threads have a pack each of n elements.
func (c *call) perPack(n int) { c.launch(ceilDiv(n, pack*packThreads), packThreads, 0) }

// perRowPack launches a kernel whose blocks have a row's packs, or an even part of them.
func (c *call) perRowPack(rows, cols int) {
	parts := ceilDiv(cols, packThreads*pack)
	c.grid(rows, parts, 1, rowThreads(ceilDiv(cols, parts), packThreads), 0)
}

// S, U and W are further types that a kernel is compiled for.
func stored(name string, t *tensor.Tensor) define { return define{name, typeName(t.DType())} }

// sumBlocks cuts rows into stretches that a block adds up: the shape alone says how many, and there are enough for any card.
func sumBlocks(rows int) (blocks, per int) {
	per = max(8, ceilDiv(rows, 1024))
	return ceilDiv(rows, per), per
}

// addColumns adds the sums of columns to dst, F32 (F64 in the reference mode), given those of so many stretches, stride elements apart.
func (d *Device) addColumns(dst *tensor.Tensor, sums driver.Pointer, blocks, stride int) {
	c := d.begin("columns", "add_columns", dst.DType())
	c.tensor(dst)
	c.pointer(sums)
	c.int(blocks)
	c.int(dst.Len())
	c.int(stride)
	c.launch(ceilDiv(dst.Len(), 32), 1024, 0)
}

// SumRows implements device.Device. Scratch is the sums of each stretch of rows.
func (d *Device) SumRows(dst, x *tensor.Tensor) {
	const op = "SumRows"
	rows, cols := x.Rows(), x.Cols()
	length(op, "dst", dst, cols)
	dtype(op, "dst", dst, arithmetic(x))
	storage(op, "x", x, arithmetic(x))
	blocks, per := sumBlocks(rows)
	sums := d.scratch(blocks * cols * dst.DType().Size())
	c := d.begin("columns", "sum_rows", x.DType())
	c.pointer(sums)
	c.tensor(x)
	c.int(rows)
	c.int(cols)
	c.int(per)
	c.perRowPack(blocks, cols)
	d.addColumns(dst, sums, blocks, cols)
}
