//go:build cuda && linux

package cuda

import (
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// Kernels that work row by row or element by element process packs: eight neighbouring elements per thread and
// iteration.
const (
	pack        = 8
	packThreads = 256 // threads of a block for kernels without rows
)

// rowThreads returns the number of threads per row of cols elements: one per pack, in whole warps, at most limit.
func rowThreads(cols, limit int) int { return min(ceilDiv(cols, 32*pack)*32, limit) }

// perPack launches a kernel in which each thread processes one pack of n elements.
func (c *call) perPack(n int) { c.launch(ceilDiv(n, pack*packThreads), packThreads, 0) }

// perRowPack launches a kernel in which each block processes the packs of a row, or an even part of them.
func (c *call) perRowPack(rows, cols int) {
	parts := ceilDiv(cols, packThreads*pack)
	c.grid(rows, parts, 1, rowThreads(ceilDiv(cols, parts), packThreads), 0)
}

// stored returns a further type that a kernel is compiled for; S, U and W are in use.
func stored(name string, t *tensor.Tensor) define { return define{name, typeName(t.DType())} }

// sumBlocks cuts rows into stretches, each summed by one block. Their number depends only on the shape and suffices
// for any card.
func sumBlocks(rows int) (blocks, per int) {
	per = max(8, ceilDiv(rows, 1024))
	return ceilDiv(rows, per), per
}

// addColumns adds the column sums of all stretches to dst, F32 (F64 in the reference mode). The sums of stretches are
// stride elements apart.
func (d *Device) addColumns(dst *tensor.Tensor, sums driver.Pointer, blocks, stride int) {
	c := d.begin("columns", "add_columns", dst.DType())
	c.tensor(dst)
	c.pointer(sums)
	c.int(blocks)
	c.int(dst.Len())
	c.int(stride)
	c.launch(ceilDiv(dst.Len(), 32), 1024, 0)
}

// SumRows implements device.Device. Scratch holds the sums of each stretch of rows.
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
