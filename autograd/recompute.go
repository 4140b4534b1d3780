package autograd

import "anneal/tensor"

// Activation checkpointing (Chen et al. 2016, arXiv 1604.06174): backward reruns a part of the model instead of
// keeping the results of its forward pass.
//
//	kept per segment       its input, one copy of the residual stream [N, D], in its own format or rounded to BF16
//	during its backward    also everything that its blocks keep, until their backward is done
//	time                   one more forward pass of the segment, without its last product, whose result is not read
//
// The rerun gives the same bits, through the same kernels in the same order, and random numbers are pure functions of
// their place: the gradients equal those without recomputation, bit for bit. The tape itself has no strategy; the
// model decides which segments to wrap. Not worth its time if activations fit in memory.
//
// The inputs can be stored outside of memory (Tape.Inputs).
//
// Rounded inputs take half the memory. The forward pass continues from the rounded numbers, too, so backward reruns
// exactly what forward computed, and the gradient is that of this rounded model to the last bit. If nothing is
// recorded, nothing is kept or rounded.

// SegmentInputs keeps the inputs of recomputed segments outside of the tape's memory (Tape.Inputs) until their
// backward passes, which come in reverse order. All inputs of a pass have the same format and shape.
type SegmentInputs interface {
	// Reset forgets all inputs.
	Reset()
	// New returns memory for the next input. Keep keeps the input that was written there.
	New(format tensor.DType, shape []int) tensor.Tensor
	Keep()
	// Last brings the last input that is kept back to the memory that New returned for it, and forgets it. The caller
	// may overwrite it there until it calls Last again.
	Last()
}

// position records the lengths of the tape's lists.
type position struct{ node, vars, tensors, routes, keep int }

// Recompute runs s, one or more blocks on the residual stream x [N, D], and keeps only a copy of x, whose format may
// be narrower than the stream's. Backward reruns s.
func (t *Tape) Recompute(s Segment, x *Var, seq *Sequence, format tensor.DType) *Var {
	if !t.grad {
		return s.Forward(t, x, seq)
	}
	t.reserve(x)
	in := t.wrap(t.input(format, x.Value.Shape()))
	in.gradMem = x.gradMem
	t.Device.Copy(&in.Value, &x.Value)
	if t.Inputs != nil {
		t.Inputs.Keep()
	}
	if format != x.Value.DType() {
		t.Device.Copy(&x.Value, &in.Value)
	}
	out := t.unrecorded(s, x, seq)
	n := t.node()
	n.backward, n.x, n.y, n.out = recomputeBack, x, in, out
	n.segment, n.seq, n.keepMark = s, seq, t.keep.Mark()
	return out
}

// input returns memory for the input of a segment.
func (t *Tape) input(format tensor.DType, shape []int) tensor.Tensor {
	if t.Inputs != nil {
		return t.Inputs.New(format, shape)
	}
	return t.keep.New(format, shape...)
}

// recomputeBack reruns the segment on the copy of its input, recording, and then runs backward through it. Everything
// kept after the segment belongs to operations whose backward is done, so it is released first.
func recomputeBack(t *Tape, n *node) {
	if !t.held {
		t.keep.Release(n.keepMark)
	}
	if t.Inputs != nil {
		t.Inputs.Last()
	}
	mark, in := t.temp.Mark(), n.y
	if in.Value.DType() != t.Types.Stream {
		in = t.wrap(t.temp.New(t.Types.Stream, n.y.Value.Shape()...)) // [N, D]
		in.gradMem = n.y.gradMem
		t.Device.Copy(&in.Value, &n.y.Value)
	}
	t.rerun(n, in).grad = n.out.grad
	t.finish(n)
	if !t.held {
		t.temp.Release(mark)
	}
	n.x.grad = in.grad
}

// RecomputePart runs s, a part of a block, on activations h. The result is temporary: the block drops it, and
// backward reruns s when it is needed. Nothing of s is kept.
func (t *Tape) RecomputePart(s Segment, h *Var, seq *Sequence) *Var {
	if !t.grad {
		return s.Forward(t, h, seq)
	}
	out := t.wrap(t.unrecorded(s, h, seq).Value)
	n := t.node()
	n.backward, n.recompute, n.x, n.out = partBack, recomputePart, h, out
	n.segment, n.seq = s, seq
	out.producer = n
	return out
}

func recomputePart(t *Tape, n *node) {
	n.y = t.rerun(n, n.x)
	n.out.Value = n.y.Value
}

func partBack(t *Tape, n *node) {
	if n.y == nil { // the value was not read again
		recomputePart(t, n)
	}
	n.y.grad = n.out.grad
	t.finish(n)
}

// unrecorded runs s without recording: everything it would keep is temporary.
func (t *Tape) unrecorded(s Segment, x *Var, seq *Sequence) *Var {
	t.grad = false
	out := s.Forward(t, x, seq)
	t.grad = true
	return out
}

// rerun records n's segment at the end of the tape.
func (t *Tape) rerun(n *node, x *Var) *Var {
	n.begin = position{t.nodeN, t.varN, t.tensorN, t.routedN, t.keep.Mark()}
	outer := t.rerunning
	t.rerunning = true
	out := n.segment.Forward(t, x, n.seq)
	t.rerunning, t.pending = outer, nil
	return out
}

// addPending adds the pending branch to v, if there is one. If the branch was dropped with its block, it is
// recomputed for the addition.
func (t *Tape) addPending(v *Var) {
	n := t.pending
	if n == nil || n.out != v {
		return
	}
	t.pending = nil
	mark, dropped := t.temp.Mark(), n.y.dropped
	t.sum(n.out, n.y, n.w, n.drop, n.seq)
	n.y.dropped = dropped
	t.temp.Release(mark)
}

// finish runs backward through the operations that rerun recorded, and removes them.
func (t *Tape) finish(n *node) {
	t.backTo(n.begin.node)
	t.nodeN, t.varN, t.tensorN, t.routedN = n.begin.node, n.begin.vars, n.begin.tensors, n.begin.routes
	if !t.held {
		t.keep.Release(n.begin.keep)
	}
}
