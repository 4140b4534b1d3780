package autograd

// ReLUSquared returns max(x, 0)² (So et al. 2021, arXiv 2109.08668): x [N, F], result [N, F]. The result is temporary; x
// is what backward needs, and consumes.
func (t *Tape) ReLUSquared(x *Var) *Var {
	in := t.value(x)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), in.Cols()))
	t.Device.ReLUSquared(&out.Value, in)
	if t.grad {
		n := t.node()
		n.back, n.again, n.brings, n.x, n.out = reluSquaredBack, reluSquaredAgain, true, x, out
		out.maker = n
	}
	return out
}

func reluSquaredAgain(t *Tape, n *node) { t.Device.ReLUSquared(&n.out.Value, t.value(n.x)) }

func reluSquaredBack(t *Tape, n *node) { t.Device.ReLUSquaredGrad(t.elementwise(n)) }
