package autograd

// ReLUSquared returns max(x, 0)² (So et al. 2021, arXiv 2109.08668): x and result [N, F]. The result is temporary;
// backward reads and consumes x.
func (t *Tape) ReLUSquared(x *Var) *Var {
	in := t.value(x)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), in.Cols()))
	t.Device.ReLUSquared(&out.Value, in)
	if t.grad {
		n := t.node()
		n.backward, n.recompute, n.fused, n.x, n.out = reluSquaredBack, reluSquaredRecompute, true, x, out
		out.producer = n
	}
	return out
}

func reluSquaredRecompute(t *Tape, n *node) { t.Device.ReLUSquared(&n.out.Value, t.value(n.x)) }

func reluSquaredBack(t *Tape, n *node) { t.Device.ReLUSquaredGrad(t.elementwise(n)) }
