package autograd

import "anneal/tensor"

// Deferred holds products of backward that are put off: the gradients of weights, which nothing else in backward waits
// for. Pipelines compute them where they would otherwise wait (zero bubble, Qi et al. 2023, arXiv 2401.10241). The
// products are the same, later, so gradients have the same bits.
//
// Memory: nothing is copied. Until RunDeferred, the tape keeps what its forward pass has kept, and here what backward
// makes, of all blocks instead of one: temporary values, and what reruns keep. The head, products with FP8 operands and
// of experts, and gradients that are sums over peers are not put off.
type Deferred struct {
	keep, temp *tensor.Arena
	list       []product
}

// product is that of dy [N, O] and x [N, I] for the gradient of p.
type product struct {
	p     *Param
	dy, x tensor.Tensor
}

// NewDeferred returns a list without products, with memory for what a backward pass makes: what
// reruns keep, and temporary values.
func NewDeferred(keep, temp *tensor.Arena) *Deferred { return &Deferred{keep: keep, temp: temp} }

// backHolding is backTo with values that stay until RunDeferred.
func (t *Tape) backHolding(first int) {
	keep, temp := t.keep, t.temp
	t.keep, t.temp, t.held = t.Deferred.keep, t.Deferred.temp, true
	t.backTo(first)
	t.keep, t.temp, t.held = keep, temp, false
	temp.Release(0) // of the head, whose backward began outside
}

// RunDeferred computes the products that the backward pass of this tape has put off, in its order.
func (t *Tape) RunDeferred() {
	d := t.Deferred
	for i := range d.list {
		t.multiplyGrad(d.list[i].p, &d.list[i].dy, &d.list[i].x)
	}
	d.list = d.list[:0]
	d.keep.Release(0)
	d.temp.Release(0)
}
