package autograd

// GeGLU returns gelu(gate)·up (Shazeer 2020, arXiv 2002.05202) with the gelu of GELU: gu [N, 2F] holds gate then up,
// result [N, F]. The result is temporary; backward reads and consumes gu.
func (t *Tape) GeGLU(gu *Var) *Var {
	in := t.value(gu)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), in.Cols()/2))
	t.Device.GeGLU(&out.Value, in)
	if t.grad {
		n := t.node()
		n.backward, n.recompute, n.fused, n.x, n.out = gegluBack, gegluRecompute, true, gu, out
		out.producer = n
	}
	return out
}

func gegluRecompute(t *Tape, n *node) { t.Device.GeGLU(&n.out.Value, t.value(n.x)) }

func gegluBack(t *Tape, n *node) { t.Device.GeGLUGrad(t.elementwise(n)) }
