package autograd

import "anneal/tensor"

// Deferred holds the matrix products of backward that are computed later: the gradients of weights, which nothing else
// in backward needs. Pipelines compute them while they would otherwise wait (zero bubble, Qi et al. 2023, arXiv
// 2401.10241). The products themselves are the same, so gradients have the same bits.
//
// Memory: nothing is copied. Until RunDeferred, the tape keeps what its forward pass has kept, and Deferred keeps the
// results of backward for all blocks instead of one: temporary values, and what reruns keep. Products of the head, of
// experts and with FP8 operands are not deferred, nor are gradients that are sums over peers.
type Deferred struct {
	keep, temp *tensor.Arena
	list       []product
}

// product is dyᵀ·x, of dy [N, O] and x [N, I], for the gradient of p.
type product struct {
	p     *Param
	dy, x tensor.Tensor
}

// NewDeferred returns an empty list of products, with memory for the results of a backward pass: keep for what reruns
// keep, temp for temporary values.
func NewDeferred(keep, temp *tensor.Arena) *Deferred { return &Deferred{keep: keep, temp: temp} }

// backHolding is backTo, but values stay until RunDeferred.
func (t *Tape) backHolding(first int) {
	keep, temp := t.keep, t.temp
	t.keep, t.temp, t.held = t.Deferred.keep, t.Deferred.temp, true
	t.backTo(first)
	t.keep, t.temp, t.held = keep, temp, false
	temp.Release(0) // of the head, whose backward began outside
}

// RunDeferred computes the products that the backward pass of this tape has deferred, in their original order.
func (t *Tape) RunDeferred() {
	d := t.Deferred
	for i := range d.list {
		t.multiplyGrad(d.list[i].p, &d.list[i].dy, &d.list[i].x)
	}
	d.list = d.list[:0]
	d.keep.Release(0)
	d.temp.Release(0)
}
