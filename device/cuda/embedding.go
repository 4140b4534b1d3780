//go:build cuda && linux

package cuda

import (
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// Embedding implements device.Device. A token whose id is outside the table gets NaN, unless it is elsewhere.
func (d *Device) Embedding(x, table, ids *tensor.Tensor) {
	const op = "Embedding"
	shape(op, "x", x, ids.Len(), table.Cols())
	dtype(op, "x", x, arithmetic(x))
	storage(op, "table", table, x.DType())
	dtype(op, "ids", ids, tensor.I32)
	c := d.begin("embedding", "embedding", table.DType())
	c.tensor(x)
	c.tensor(table)
	c.tensor(ids)
	c.int(table.Rows())
	c.int(table.Cols())
	c.launch(ids.Len(), rowThreads(table.Cols(), normThreads), 0)
}

// EmbeddingGrad implements device.Device. A token whose id is outside the table adds nothing.
func (d *Device) EmbeddingGrad(dtable, dx, ids *tensor.Tensor) {
	const op = "EmbeddingGrad"
	shape(op, "dx", dx, ids.Len(), dtable.Cols())
	dtype(op, "dx", dx, arithmetic(dx))
	dtype(op, "ids", ids, tensor.I32)
	d.addByID(dtable, dx, 0, nil, ids)
}

// sortedBlock is the number of keys that one block sorts.
const sortedBlock = 2048

// window is the number of tokens, in the order of their ids, whose rows one block sums.
const window = 64

// addByID adds factor[0] times rows of x to the rows ids of table, in token order. It adds the columns of each row of
// x from first on, as many as table has. A nil factor is 1; factor and table have the dtype of arithmetic. Scratch
// holds the sorted keys and two rows of sums per window.
func (d *Device) addByID(table, x *tensor.Tensor, first int, factor, ids *tensor.Tensor) {
	n, cols, size := ids.Len(), table.Cols(), table.DType().Size()
	dtype("addByID", "table", table, arithmetic(x))
	room, windows := 1, ceilDiv(n, window)
	for room < n {
		room *= 2
	}
	room = max(room, 64)
	keys := d.scratch(room*8 + 2*windows*cols*size)
	parts := keys + driver.Pointer(room*8)
	d.sortKeys(keys, ids, room)

	c := d.begin("embedding", "add_by_id", x.DType())
	c.tensor(table)
	c.pointer(parts)
	c.pointer(driver.Pointer(x.Pointer()) + driver.Pointer(first*x.DType().Size()))
	c.tensor(factor)
	c.pointer(keys)
	c.int(n)
	c.int(cols)
	c.int(x.Cols())
	c.int(table.Rows())
	c.launch(windows, rowThreads(cols, normThreads), 0)

	c = d.begin("embedding", "join_windows", x.DType())
	c.tensor(table)
	c.pointer(parts)
	c.tensor(factor)
	c.pointer(keys)
	c.int(n)
	c.int(cols)
	c.int(table.Rows())
	c.launch(windows, rowThreads(cols, normThreads), 0)
}

// sortKeys computes the keys of tokens and sorts them by a bitonic network: one launch for all steps within blocks,
// and one for each step across blocks.
func (d *Device) sortKeys(keys driver.Pointer, ids *tensor.Tensor, room int) {
	block := min(room, sortedBlock)
	c := d.begin("embedding", "make_keys", tensor.F32)
	c.pointer(keys)
	c.tensor(ids)
	c.int(ids.Len())
	c.launch(room/(block/2), block/2, 0)
	within := func(first, last int) {
		c := d.begin("embedding", "sort_block", tensor.F32)
		c.pointer(keys)
		c.int(first)
		c.int(last)
		c.launch(room/block, block/2, block*8)
	}
	within(2, block)
	for stage := 2 * block; stage <= room; stage *= 2 {
		for apart := stage / 2; apart >= block; apart /= 2 {
			c := d.begin("embedding", "sort_step", tensor.F32)
			c.pointer(keys)
			c.int(stage)
			c.int(apart)
			c.launch(room/block, block/2, 0)
		}
		within(stage, stage)
	}
}
