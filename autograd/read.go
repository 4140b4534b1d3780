package autograd

// ReadStream returns a copy of the residual stream x [N, D] in the format of activations, for a branch that does not
// begin with a norm. It does not consume x.
func (t *Tape) ReadStream(x *Var) *Var {
	in := t.value(x)
	out := t.wrap(t.kept(t.Types.Activation, in.Rows(), in.Cols()))
	t.Device.Copy(&out.Value, in)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.out = readStreamBack, x, out
	}
	return out
}

func readStreamBack(t *Tape, n *node) {
	g, _ := t.gradOf(n.out)
	t.Device.Add(t.streamGrad(n.x), g)
}
