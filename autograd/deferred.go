package autograd

import "anneal/tensor"

// Deferred holds products of backward that are put off: the gradients of weights, which nothing else in backward waits
// for. Pipelines compute them where they would otherwise wait (zero bubble, Qi et al. 2023, arXiv 2401.10241). The
// products are the same, later, so gradients have the same bits.
//
// Memory: nothing is copied. Until RunDeferred, the tape keeps what its forward pass has kept, and has memory of its
// own for the temporary values of backward, of all blocks instead of one. With recomputation it also keeps what all
// reruns keep. The head, products with FP8 operands and of experts, and gradients that are sums over peers are not put
// off.
type Deferred struct {
	arena *tensor.Arena
	list  []product
}

// product is that of dy [N, O] and x [N, I] for the gradient of p.
type product struct {
	p     *Param
	dy, x tensor.Tensor
}

// NewDeferred returns a list without products, with memory for the temporary values of a backward pass.
func NewDeferred(a *tensor.Arena) *Deferred { return &Deferred{arena: a} }

// backHolding is backTo with temporary values that stay until RunDeferred.
func (t *Tape) backHolding(first int) {
	shared := t.temp
	t.temp, t.held = t.Deferred.arena, true
	t.backTo(first)
	t.temp, t.held = shared, false
	shared.Release(0) // of the head, whose backward began outside
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
