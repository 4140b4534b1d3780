package autograd

// SwiGLU returns silu(gate)·up (Shazeer 2020, arXiv 2002.05202): gu [N, 2F] holds gate then up, result [N, F]. The
// result is temporary; backward reads and consumes gu.
func (t *Tape) SwiGLU(gu *Var) *Var {
	in := t.value(gu)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), in.Cols()/2))
	t.Device.SwiGLU(&out.Value, in)
	if t.grad {
		n := t.node()
		n.backward, n.recompute, n.fused, n.x, n.out = swigluBack, swigluRecompute, true, gu, out
		out.producer = n
	}
	return out
}

func swigluRecompute(t *Tape, n *node) { t.Device.SwiGLU(&n.out.Value, t.value(n.x)) }

func swigluBack(t *Tape, n *node) { t.Device.SwiGLUGrad(t.elementwise(n)) }
