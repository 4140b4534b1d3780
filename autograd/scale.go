package autograd

// ScaleStream multiplies the residual stream x [N, D] by factor, in place; it consumes x.
func (t *Tape) ScaleStream(x *Var, factor float64) *Var {
	out := t.wrap(t.consume(x))
	t.Device.Scale(&out.Value, factor)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.out, n.factor = scaleStreamBack, x, out, factor
	}
	return out
}

func scaleStreamBack(t *Tape, n *node) {
	t.Device.Scale(t.streamGrad(n.out), n.factor)
	n.x.grad = n.out.grad // the gradient of the result is not read again, so its buffer is reused
}

// ScaleParam returns factor·p, with its bias, as a parameter of the tape, whose gradient goes to p. It copies p and
// is meant for small parameters: a scaled gain scales the output of a norm at no cost per token.
func (t *Tape) ScaleParam(p *Param, factor float64) *Param {
	if t.paramN == len(t.params) {
		t.params = append(t.params, new(Param))
	}
	q := t.params[t.paramN]
	t.paramN++
	*q = Param{Value: t.keep.New(p.Value.DType(), p.Value.Shape()...)}
	t.Device.Copy(&q.Value, &p.Value)
	t.Device.Scale(&q.Value, factor)
	if p.Bias != nil {
		q.Bias = t.ScaleParam(p.Bias, factor)
	}
	if t.grad {
		q.Grad = t.keep.New(p.Grad.DType(), p.Value.Shape()...)
		n := t.node()
		n.backward, n.w, n.w2, n.factor = scaleParamBack, p, q, factor
	}
	return q
}

func scaleParamBack(t *Tape, n *node) {
	if !n.w2.written {
		return
	}
	t.Device.Scale(&n.w2.Grad, n.factor)
	t.Device.Add(t.sumGrad(n.w), &n.w2.Grad)
}
