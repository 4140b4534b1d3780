package autograd

// AddShared returns y + sigmoid(gate)·s, for an expert that all tokens go through (Qwen2-MoE): y [N, D] from Experts, s
// [N, D], gate [N, 1] in Types.Stat, or nil for no gate. It adds in place and consumes y.
func (t *Tape) AddShared(y, s, gate *Var) *Var {
	out := t.wrap(t.consume(y))
	out.inBlock = true
	if gate == nil {
		t.Device.Add(&out.Value, t.value(s))
	} else {
		t.Device.GateRows(&out.Value, t.value(s), t.value(gate))
	}
	if t.grad {
		n := t.node()
		n.backward, n.x, n.y, n.gate, n.out = addSharedBack, y, s, gate, out
	}
	return out
}

func addSharedBack(t *Tape, n *node) {
	ds := t.onlyGrad(n.y)
	if n.gate == nil {
		t.Device.Copy(ds, &n.out.grad)
	} else {
		t.Device.GateRowsGrad(ds, t.onlyGrad(n.gate), &n.out.grad, t.value(n.y), t.value(n.gate))
	}
	n.x.grad = n.out.grad // the gradient of a sum is the same for both terms
}
