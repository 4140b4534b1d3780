package devicetest

import (
	"anneal/device"
	"anneal/tensor"
)

// Route implements device.Device.
func (d *Device) Route(weights, experts, logZ, sums, logits *tensor.Tensor, normalise bool) {
	d.take(&weights, &experts, &logZ, &sums, &logits)
	d.later(func() { d.cpu.Route(weights, experts, logZ, sums, logits, normalise) })
}

// RouteGrad implements device.Device.
func (d *Device) RouteGrad(dlogits, dweights, weights, experts, logZ, counts, logits *tensor.Tensor, o device.RouteOptions) {
	d.take(&dlogits, &dweights, &weights, &experts, &logZ, &counts, &logits)
	d.later(func() { d.cpu.RouteGrad(dlogits, dweights, weights, experts, logZ, counts, logits, o) })
}

// Dispatch implements device.Device.
func (d *Device) Dispatch(order, place, counts, experts *tensor.Tensor) {
	d.take(&order, &place, &counts, &experts)
	d.later(func() { d.cpu.Dispatch(order, place, counts, experts) })
}

// TakeRows implements device.Device.
func (d *Device) TakeRows(dst, src, order *tensor.Tensor) {
	d.take(&dst, &src, &order)
	d.later(func() { d.cpu.TakeRows(dst, src, order) })
}

// MixRows implements device.Device.
func (d *Device) MixRows(dst, src, weights, place *tensor.Tensor, add bool) {
	d.take(&dst, &src, &weights, &place)
	d.later(func() { d.cpu.MixRows(dst, src, weights, place, add) })
}

// WeighRows implements device.Device.
func (d *Device) WeighRows(dweights, dx, x, weights, order *tensor.Tensor) {
	d.take(&dweights, &dx, &x, &weights, &order)
	d.later(func() { d.cpu.WeighRows(dweights, dx, x, weights, order) })
}

// GateRows implements device.Device.
func (d *Device) GateRows(dst, src, gates *tensor.Tensor) {
	d.take(&dst, &src, &gates)
	d.later(func() { d.cpu.GateRows(dst, src, gates) })
}

// GateRowsGrad implements device.Device.
func (d *Device) GateRowsGrad(dsrc, dgates, dy, src, gates *tensor.Tensor) {
	d.take(&dsrc, &dgates, &dy, &src, &gates)
	d.later(func() { d.cpu.GateRowsGrad(dsrc, dgates, dy, src, gates) })
}
