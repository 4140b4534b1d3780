//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/tensor"
)

// Route implements device.Device. Scratch holds the sums of each stretch of tokens.
func (d *Device) Route(weights, experts, logZ, sums, logits *tensor.Tensor, normalise bool) {
	const op = "Route"
	rows, cols, wide := logits.Rows(), logits.Cols(), arithmetic(logits)
	checkRoute(op, weights, experts, logZ, logits)
	checkWide(op, "sums", sums, cols, wide)
	blocks, per := sumBlocks(rows)
	parts := d.scratch(blocks * cols * wide.Size())
	c := d.begin("experts", "route", wide, stored("S", logits), stored("U", logits))
	c.tensor(weights)
	c.tensor(experts)
	c.tensor(logZ)
	c.pointer(parts)
	c.tensor(logits)
	c.int(rows)
	c.int(cols)
	c.int(weights.Cols())
	c.int(per)
	c.bool(normalise)
	c.launch(blocks, 32, 0)
	d.addColumns(sums, parts, blocks, cols)
}

// RouteGrad implements device.Device.
func (d *Device) RouteGrad(dlogits, dweights, weights, experts, logZ, counts, logits *tensor.Tensor,
	o device.RouteOptions) {
	const op = "RouteGrad"
	rows, cols, wide := logits.Rows(), logits.Cols(), arithmetic(logits)
	checkRoute(op, weights, experts, logZ, logits)
	checkWide(op, "dlogits", dlogits, rows*cols, wide)
	checkWide(op, "dweights", dweights, weights.Len(), wide)
	length(op, "counts", counts, cols)
	dtype(op, "counts", counts, tensor.I32)
	c := d.begin("experts", "route_grad", wide, stored("S", logits), stored("U", logits))
	c.tensor(dlogits)
	c.tensor(dweights)
	c.tensor(weights)
	c.tensor(experts)
	c.tensor(logZ)
	c.tensor(counts)
	c.tensor(logits)
	c.int(cols)
	c.int(weights.Cols())
	c.bool(o.Normalise)
	c.double(o.Balance)
	c.double(o.ZLoss)
	c.launch(rows, 32, 0)
}

func checkRoute(op string, weights, experts, logZ, logits *tensor.Tensor) {
	rows, wide := logits.Rows(), arithmetic(logits)
	shape(op, "weights", weights, rows, min(weights.Cols(), logits.Cols()))
	dtype(op, "weights", weights, wide)
	shape(op, "experts", experts, rows, weights.Cols())
	dtype(op, "experts", experts, tensor.I32)
	checkWide(op, "log Z", logZ, rows, wide)
	dtype(op, "logits", logits, wide)
}

// Dispatch implements device.Device. Scratch holds the sorted keys.
func (d *Device) Dispatch(order, place, counts, experts *tensor.Tensor) {
	const op = "Dispatch"
	n := experts.Len()
	length(op, "order", order, n)
	length(op, "place", place, n)
	for _, t := range []*tensor.Tensor{order, place, counts, experts} {
		dtype(op, "a list", t, tensor.I32)
	}
	room := 64
	for room < n {
		room *= 2
	}
	keys := d.scratch(room * 8)
	d.sortKeys(keys, experts, room)
	c := d.begin("experts", "place_keys", tensor.F32, define{"S", "float"}, define{"U", "float"})
	c.tensor(order)
	c.tensor(place)
	c.pointer(keys)
	c.int(n)
	c.launch(ceilDiv(n, packThreads), packThreads, 0)
	c = d.begin("experts", "count_keys", tensor.F32, define{"S", "float"}, define{"U", "float"})
	c.tensor(counts)
	c.pointer(keys)
	c.int(n)
	c.int(counts.Len())
	c.launch(ceilDiv(counts.Len(), packThreads), packThreads, 0)
}

// TakeRows implements device.Device.
func (d *Device) TakeRows(dst, src, order *tensor.Tensor, k int) {
	const op = "TakeRows"
	shape(op, "dst", dst, order.Len(), src.Cols())
	checkRows(op, dst, src)
	dtype(op, "order", order, tensor.I32)
	c := d.begin("experts", "take_rows", dst.DType(), stored("S", src), stored("U", src))
	c.tensor(dst)
	c.tensor(src)
	c.tensor(order)
	c.int(src.Cols())
	c.int(k)
	c.launch(dst.Rows(), rowThreads(src.Cols(), normThreads), 0)
}

// MixRows implements device.Device.
func (d *Device) MixRows(dst, src, weights, place *tensor.Tensor, add bool) {
	const op = "MixRows"
	shape(op, "src", src, place.Len(), dst.Cols())
	checkRows(op, dst, src)
	dtype(op, "place", place, tensor.I32)
	if weights != nil {
		checkWide(op, "weights", weights, place.Len(), arithmetic(src))
	}
	c := d.begin("experts", "mix_rows", dst.DType(), stored("S", src), stored("U", src))
	c.tensor(dst)
	c.tensor(src)
	c.tensor(weights)
	c.tensor(place)
	c.int(dst.Cols())
	c.int(place.Len() / max(1, dst.Rows()))
	c.bool(add)
	c.launch(dst.Rows(), rowThreads(dst.Cols(), normThreads), 0)
}

// WeighRows implements device.Device.
func (d *Device) WeighRows(dweights, dx, x, weights, order *tensor.Tensor) {
	const op = "WeighRows"
	shape(op, "dx", dx, order.Len(), x.Cols())
	shape(op, "x", x, order.Len(), x.Cols())
	checkRows(op, dx, x)
	checkWide(op, "weights", weights, order.Len(), arithmetic(x))
	checkWide(op, "dweights", dweights, order.Len(), arithmetic(x))
	dtype(op, "order", order, tensor.I32)
	c := d.begin("experts", "weigh_rows", dx.DType(), stored("S", x), stored("U", x))
	c.tensor(dweights)
	c.tensor(dx)
	c.tensor(x)
	c.tensor(weights)
	c.tensor(order)
	c.int(x.Cols())
	c.launch(x.Rows(), rowThreads(x.Cols(), normThreads), 0)
}

// GateRows implements device.Device.
func (d *Device) GateRows(dst, src, gates *tensor.Tensor) {
	checkGates("GateRows", dst, src, gates)
	c := d.begin("experts", "gate_rows", dst.DType(), stored("S", src), stored("U", src))
	c.tensor(dst)
	c.tensor(src)
	c.tensor(gates)
	c.int(src.Cols())
	c.launch(src.Rows(), rowThreads(src.Cols(), normThreads), 0)
}

// GateRowsGrad implements device.Device.
func (d *Device) GateRowsGrad(dsrc, dgates, dy, src, gates *tensor.Tensor) {
	const op = "GateRowsGrad"
	checkGates(op, dy, src, gates)
	checkGates(op, dsrc, src, dgates)
	c := d.begin("experts", "gate_rows_grad", dsrc.DType(), stored("S", src), stored("U", dy))
	c.tensor(dsrc)
	c.tensor(dgates)
	c.tensor(dy)
	c.tensor(src)
	c.tensor(gates)
	c.int(src.Cols())
	c.launch(src.Rows(), rowThreads(src.Cols(), normThreads), 0)
}

func checkGates(op string, dst, src, gates *tensor.Tensor) {
	shape(op, "src", src, dst.Rows(), dst.Cols())
	checkRows(op, dst, src)
	checkWide(op, "gates", gates, src.Rows(), arithmetic(src))
}

// checkRows panics unless dst and src have storage of activations, for one arithmetic.
func checkRows(op string, dst, src *tensor.Tensor) {
	storage(op, "dst", dst, arithmetic(src))
	storage(op, "src", src, arithmetic(src))
}
