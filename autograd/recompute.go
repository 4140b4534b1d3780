package autograd

// Activation checkpointing (Chen et al. 2016, arXiv 1604.06174): backward runs a part of the model again instead of
// keeping what its forward made.
//
//	kept of a segment      its input, one copy of the residual stream [N, D]
//	at its backward        everything that its blocks keep, on top of that, until their backward is done
//	time                   one more forward pass of the segment, without the product that ends it, whose result nobody reads
//
// What runs again sees the bits that the first run saw, through the same kernels in the same order, and random numbers
// are pure functions of their place: gradients are those of the plain tape, bit for bit. The tape itself knows no
// strategy; a model decides which of its segments it wraps. Not worth its time where activations fit.

// position is how far the tape's lists were filled.
type position struct{ node, vars, tensors, keep int }

// Recompute runs s, one or more blocks on the residual stream x [N, D], and keeps a copy of x only; backward runs s again.
func (t *Tape) Recompute(s Segment, x *Var, seq *Sequence) *Var {
	if !t.grad {
		return s.Forward(t, x, seq)
	}
	t.reserve(x)
	in := t.wrap(t.keep.New(x.Value.DType(), x.Value.Shape()...))
	in.room = x.room
	t.Device.Copy(&in.Value, &x.Value)
	out := t.unrecorded(s, x, seq)
	n := t.node()
	n.back, n.x, n.y, n.out = recomputeBack, x, in, out
	n.segment, n.seq, n.keepMark = s, seq, t.keep.Mark()
	return out
}

// recomputeBack runs the segment on the copy of its input, recording, and then backward through it. All that was kept
// after the segment belongs to operations whose backward is done.
func recomputeBack(t *Tape, n *node) {
	t.keep.Release(n.keepMark)
	mark := t.temp.Mark()
	t.rerun(n, n.y).grad = n.out.grad
	t.finish(n)
	t.temp.Release(mark)
	n.x.grad = n.y.grad
}

// RecomputePart runs s, a part of a block, on activations h. The result is a temporary value: the block drops it, and
// backward runs s again when it is needed, so that nothing of s is kept.
func (t *Tape) RecomputePart(s Segment, h *Var, seq *Sequence) *Var {
	if !t.grad {
		return s.Forward(t, h, seq)
	}
	out := t.wrap(t.unrecorded(s, h, seq).Value)
	n := t.node()
	n.back, n.again, n.x, n.out = partBack, partAgain, h, out
	n.segment, n.seq = s, seq
	out.maker = n
	return out
}

func partAgain(t *Tape, n *node) {
	n.y = t.rerun(n, n.x)
	n.out.Value = n.y.Value
}

func partBack(t *Tape, n *node) {
	if n.y == nil { // nobody asked for the value
		partAgain(t, n)
	}
	n.y.grad = n.out.grad
	t.finish(n)
}

// unrecorded runs s as without gradients: what it would keep is temporary.
func (t *Tape) unrecorded(s Segment, x *Var, seq *Sequence) *Var {
	t.grad = false
	out := s.Forward(t, x, seq)
	t.grad = true
	return out
}

// rerun records n's segment, at the end of the tape.
func (t *Tape) rerun(n *node, x *Var) *Var {
	n.begin = position{t.nodeN, t.varN, t.tensorN, t.keep.Mark()}
	outer := t.again
	t.again = true
	out := n.segment.Forward(t, x, n.seq)
	t.again, t.owed = outer, nil
	return out
}

// settle makes the addition that gives v, if it is owed. The branch it adds may have been dropped with its block: then it is
// made for the occasion.
func (t *Tape) settle(v *Var) {
	n := t.owed
	if n == nil || n.out != v {
		return
	}
	t.owed = nil
	mark, gone := t.temp.Mark(), n.y.gone
	t.sum(n.out, n.y, n.w, n.drop)
	n.y.gone = gone
	t.temp.Release(mark)
}

// finish runs backward through what rerun recorded, and forgets it.
func (t *Tape) finish(n *node) {
	t.backTo(n.begin.node)
	t.nodeN, t.varN, t.tensorN = n.begin.node, n.begin.vars, n.begin.tensors
	t.keep.Release(n.begin.keep)
}
