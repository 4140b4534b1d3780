package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Deferred holds products of backward that are put off: the gradients of weights, which nothing else in backward waits
// for. Pipelines compute them where they would otherwise wait (zero bubble, Qi et al. 2023, arXiv 2401.10241). The
// products are the same, later, so gradients have the same bits.
//
// Memory: copies of both operands, N·(I+O) activations for a weight [O, I]. The head, products with FP8 operands and of
// experts, and gradients that are sums over peers are not put off.
type Deferred struct {
	arena *tensor.Arena
	list  []product
}

// product is that of dy [N, O] and x [N, I] for the gradient of p.
type product struct {
	p     *Param
	dy, x tensor.Tensor
}

// NewDeferred returns a list without products, with memory for them.
func NewDeferred(a *tensor.Arena) *Deferred { return &Deferred{arena: a} }

// add puts a product off.
func (d *Deferred) add(dev device.Device, p *Param, dy, x *tensor.Tensor) {
	d.list = append(d.list, product{p, d.arena.New(dy.DType(), dy.Shape()...), d.arena.New(x.DType(), x.Shape()...)})
	last := &d.list[len(d.list)-1]
	dev.Copy(&last.dy, dy)
	dev.Copy(&last.x, x)
}

// RunDeferred computes the products that the backward pass of this tape has put off, in its order.
func (t *Tape) RunDeferred() {
	d := t.Deferred
	for i := range d.list {
		t.multiplyGrad(d.list[i].p, &d.list[i].dy, &d.list[i].x)
	}
	d.list = d.list[:0]
	d.arena.Release(0)
}
