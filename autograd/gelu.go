package autograd

// GELU returns gelu(x) in the form of GPT-2 (Hendrycks & Gimpel 2016, arXiv 1606.08415): x and result [N, F]. The result is
// temporary; x is what backward needs.
func (t *Tape) GELU(x *Var) *Var {
	in := t.value(x)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), in.Cols()))
	t.Device.GELU(&out.Value, in)
	if t.grad {
		n := t.node()
		n.back, n.again, n.brings, n.x, n.out = geluBack, geluAgain, true, x, out
		out.maker = n
	}
	return out
}

func geluAgain(t *Tape, n *node) { t.Device.GELU(&n.out.Value, t.value(n.x)) }

func geluBack(t *Tape, n *node) { t.Device.GELUGrad(t.elementwise(n)) }
