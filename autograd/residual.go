package autograd

import "anneal/tensor"

// AddBranch projects a branch and adds it to the residual stream in one product. A branch with a norm after the
// projection needs three operations: Project, the norm, and AddStream.

// Project is Linear with its result in Types.Stream, for a norm: x [N, I], w [O, I], result [N, O]. The result lives
// until the end of the block. It is not recomputed, because the backward of a norm does not read it.
func (t *Tape) Project(x *Var, w *Param) *Var {
	in := t.value(x)
	y := t.ref(t.temp.New(t.Types.Stream, in.Rows(), w.Value.Dim(0)))
	t.linear(y, in, w, false)
	out := t.wrap(*t.summed(y, w))
	out.inBlock = true
	if t.grad {
		n := t.node()
		n.backward, n.x, n.w, n.out = projectBack, x, w, out
	}
	return out
}

func projectBack(t *Tape, n *node) { t.branchGrads(n.x, n.w, t.narrowed(&n.out.grad, n.w)) }

// AddStream returns stream + mask∘y, with the factors of d: stream and y [N, D]. It works in place and consumes
// stream. The caller must have checked Dropped before it computed y.
func (t *Tape) AddStream(stream, y *Var, d Drop, seq *Sequence) *Var {
	o, some := t.mask(d, seq)
	out := t.consumeStream(stream)
	if o.Add = true; some {
		t.dropout(&out.Value, t.value(y), o, seq)
	} else {
		t.Device.Add(&out.Value, t.value(y))
	}
	if t.grad {
		n := t.node()
		n.backward, n.x, n.y, n.out, n.seq = addStreamBack, stream, y, out, seq
		if some {
			n.drop = o
		}
	}
	return out
}

func addStreamBack(t *Tape, n *node) {
	dy, g := t.streamGrad(n.out), t.onlyGrad(n.y)
	if o := n.drop; o.Scale != 0 {
		o.Add = false
		t.dropout(g, dy, o, n.seq)
	} else {
		t.Device.Copy(g, dy)
	}
	n.x.grad = n.out.grad // the gradient of a sum is the same for both terms, so one buffer serves both
}

// narrowed returns dy [N, O], rounded once if both products of the backward of x·wᵀ would round it, else dy. If one of
// the products is deferred, it returns a copy, because the gradient of the stream continues to change.
func (t *Tape) narrowed(dy *tensor.Tensor, w *Param) *tensor.Tensor {
	dtype := dy.DType()
	switch {
	case t.quantises(w):
		return dy
	case t.Types.narrow():
		dtype = t.Types.Activation
	case !t.held:
		return dy
	}
	g := t.ref(t.temp.New(dtype, dy.Shape()...)) // [N, O]
	t.Device.Copy(g, dy)
	return g
}
