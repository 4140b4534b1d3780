package autograd

// GELU returns gelu(x) in the form of GPT-2 (Hendrycks & Gimpel 2016, arXiv 1606.08415): x and result [N, F]. The
// result is temporary; backward reads and consumes x.
func (t *Tape) GELU(x *Var) *Var {
	in := t.value(x)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), in.Cols()))
	t.Device.GELU(&out.Value, in)
	if t.grad {
		n := t.node()
		n.backward, n.recompute, n.fused, n.x, n.out = geluBack, geluRecompute, true, x, out
		out.producer = n
	}
	return out
}

func geluRecompute(t *Tape, n *node) { t.Device.GELU(&n.out.Value, t.value(n.x)) }

func geluBack(t *Tape, n *node) { t.Device.GELUGrad(t.elementwise(n)) }
