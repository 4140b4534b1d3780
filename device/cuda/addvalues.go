//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/tensor"
)

// AddValues implements device.Device. A token whose id is outside the table gets NaN.
func (d *Device) AddValues(qkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	const op = "AddValues"
	checkValues(op, "qkv", qkv, table, weight, ids, heads)
	c := d.begin("addvalues", "add_values", qkv.DType(), define{"S", typeName(table.DType())})
	c.tensor(qkv)
	c.tensor(table)
	c.tensor(weight)
	c.perToken(table, ids, heads)
}

// perToken adds the ids and sizes of a kernel of addvalues.cu, and launches it.
func (c *call) perToken(table, ids *tensor.Tensor, heads device.Heads) {
	c.tensor(ids)
	c.int(table.Rows())
	c.int(heads.Cols())
	c.int(firstValue(heads))
	c.int(table.Cols())
	c.launch(ids.Len(), rowThreads(table.Cols(), 256), 0)
}

// firstValue returns the first value column of qkv.
func firstValue(heads device.Heads) int { return (heads.Q + heads.KV) * heads.Size }

// AddValuesGrad implements device.Device. A token whose id is outside the table adds nothing. Scratch holds one
// product per token.
func (d *Device) AddValuesGrad(dtable, dweight, dqkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	const op = "AddValuesGrad"
	checkValues(op, "dqkv", dqkv, table, weight, ids, heads)
	shape(op, "dtable", dtable, table.Rows(), table.Cols())
	dtype(op, "dtable", dtable, arithmetic(dqkv))
	length(op, "dweight", dweight, 1)
	dtype(op, "dweight", dweight, arithmetic(dqkv))
	d.addByID(dtable, dqkv, firstValue(heads), weight, ids)

	n := ids.Len()
	dots := d.scratch(8 * n)
	s := define{"S", typeName(table.DType())}
	c := d.begin("addvalues", "dot_values", dqkv.DType(), s)
	c.pointer(dots)
	c.tensor(dqkv)
	c.tensor(table)
	c.perToken(table, ids, heads)

	c = d.begin("addvalues", "add_dots", dqkv.DType(), s)
	c.tensor(dweight)
	c.pointer(dots)
	c.int(n)
	c.launch(1, 256, 0)
}

func checkValues(op, name string, qkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	shape(op, name, qkv, ids.Len(), heads.Cols())
	storage(op, name, qkv, arithmetic(qkv))
	shape(op, "table", table, table.Rows(), heads.KV*heads.Size)
	storage(op, "table", table, arithmetic(qkv))
	length(op, "weight", weight, 1)
	dtype(op, "weight", weight, arithmetic(qkv))
	dtype(op, "ids", ids, tensor.I32)
}
