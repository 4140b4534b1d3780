package autograd

// Remember returns a copy of the residual stream x [N, D] for MixStreams. It outlives every block and does not
// consume x.
func (t *Tape) Remember(x *Var) *Var {
	in := t.value(x)
	out := t.wrap(t.keep.New(t.Types.Stream, in.Rows(), in.Cols()))
	t.Device.Copy(&out.Value, in)
	if t.grad {
		t.reserve(out)
		n := t.node()
		n.backward, n.x, n.out = rememberBack, x, out
	}
	return out
}

func rememberBack(t *Tape, n *node) { t.Device.Add(t.streamGrad(n.x), &n.out.grad) }

// MixStreams returns w[0]·stream + w[1]·y, both [N, D] and on the residual stream, w [2]. It works in place and
// consumes stream; it keeps a copy of stream (N·D activations) for the gradient of w. y comes from Remember.
func (t *Tape) MixStreams(stream, y *Var, w *Param) *Var {
	out := t.consumeStream(stream)
	if !t.grad {
		t.Device.MixStreams(&out.Value, nil, t.value(y), &w.Value)
		return out
	}
	kept := t.keptRef(t.Types.Activation, out.Value.Rows(), out.Value.Cols())
	t.Device.MixStreams(&out.Value, kept, t.value(y), &w.Value)
	n := t.node()
	n.backward, n.x, n.y, n.w, n.out = mixStreamsBack, stream, y, w, out
	n.saved[0] = kept
	return out
}

func mixStreamsBack(t *Tape, n *node) {
	t.Device.MixStreamsGrad(t.streamGrad(n.out), t.streamGrad(n.y), t.sumGrad(n.w), n.saved[0],
		t.value(n.y), &n.w.Value)
	n.x.grad = n.out.grad // the gradient of the result is not read again, so its buffer is reused
}
