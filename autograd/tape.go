package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Types are the storage formats of one precision policy.
type Types struct {
	Stream     tensor.DType // the residual stream and its gradient
	Activation tensor.DType // what layers hand to each other, and their gradients
	Operand    tensor.DType // what matrix operands are rounded to
	Stat       tensor.DType // norms, log-sum-exps, losses, gradients of parameters
	FP8        bool         // whether layers that have scales for it (Param.FP8) multiply FP8 operands
}

// narrow reports whether products round their operands to what activations are stored in, so that storing an operand in that
// changes no bit.
func (t Types) narrow() bool { return t.Operand == t.Activation && t.Activation != t.Stream }

// A Tape records operations on a device. After a warm-up it allocates nothing on the Go heap: variables, nodes and
// tensor headers are reused from step to step. It is used from one goroutine.
type Tape struct {
	Device device.Device
	Types  Types
	// LogitBytes, if that is more than the default, is what HeadLoss may take for the logits that exist at one time.
	LogitBytes int
	// LossScale multiplies the gradient of the loss before it is rounded to Types.Activation; 0 means 1.
	LossScale float64
	// Rounded holds copies of weights, for generating; nil for none.
	Rounded Rounded

	keep  *tensor.Arena // lives until its block's backward
	temp  *tensor.Arena // lives until the end of a block
	grad  bool          // whether to record
	train bool          // what runs is part of a training step
	again bool          // what runs now ran before, in forward: statistics count it once
	owed  *node         // the last addition to the stream of what runs again, until it is asked for

	nodes   []*node
	nodeN   int
	vars    []*Var
	varN    int
	tensors []*tensor.Tensor
	tensorN int
	params  []*Param // made by ScaleParam
	paramN  int
}

// A Var is a value on the tape.
type Var struct {
	Value tensor.Tensor
	grad  tensor.Tensor
	room  tensor.Tensor // memory for the gradient, on the residual stream of blocks
	maker *node         // computes Value again in backward if it was temporary
	gone  bool          // temporary and dropped
	used  bool          // consumed by an operation that took over its memory
	spent bool          // came back in place of its gradient, which is complete
}

// A Param is a trained tensor. Gradients of all micro-batches of a step add up in Grad; the first overwrites.
type Param struct {
	Value, Grad tensor.Tensor
	FP8         *FP8   // scales of a linear layer that can multiply FP8 operands; nil for others
	Bias        *Param // added to what a linear layer or the gain of a norm makes; nil for none
	written     bool
}

// ResetGrad makes the next gradient overwrite Grad: the start of an optimizer step.
func (p *Param) ResetGrad() { p.written = false }

// HasGrad reports whether a gradient was written since ResetGrad.
func (p *Param) HasGrad() bool { return p.written }

// node is one recorded operation. One struct serves all of them, so that recording allocates nothing.
type node struct {
	back   func(*Tape, *node)
	again  func(*Tape, *node)
	brings bool // back brings the value of out again, too, where out is spent

	x, y, out *Var
	w, w2     *Param
	saved     [3]*tensor.Tensor
	tables    [3]*tensor.Tensor // owned by the caller
	heads     device.Heads
	mask      device.Mask
	factor    float64

	firstVar, lastVar  int // of a block
	tempMark, keepMark int

	drop    device.Dropout
	segment Segment // to run again
	seq     *Sequence
	begin   position // of what ran again
}

// NewTape returns a tape on d that takes what it keeps from keep and what it drops from temp.
func NewTape(d device.Device, types Types, keep, temp *tensor.Arena) *Tape {
	return &Tape{Device: d, Types: types, keep: keep, temp: temp}
}

// Reset forgets everything recorded and frees its memory. With grad the operations that follow are a training step,
// recorded for Backward; without, the tape keeps only what the forward pass needs, and nothing is dropped.
func (t *Tape) Reset(grad bool) {
	t.grad, t.train = grad, grad
	t.nodeN, t.varN, t.tensorN, t.paramN = 0, 0, 0, 0
	t.keep.Release(0)
	t.temp.Release(0)
}

// Backward runs the recorded operations in reverse. Gradients of parameters are added to Param.Grad. An operation whose
// result leads to no loss has no gradient and is passed over: its parameters then have none either (Param.HasGrad).
func (t *Tape) Backward() {
	if !t.grad {
		panic("autograd: Backward on a tape that was Reset without gradients")
	}
	t.backTo(0)
}

// backTo runs the backward of the recorded operations from the last to number first.
func (t *Tape) backTo(first int) {
	for i := t.nodeN - 1; i >= first; i-- {
		n := t.nodes[i]
		if n.out != nil && n.out.grad.IsZero() {
			continue
		}
		n.back(t, n)
	}
}

// A Segment is a part of a model that maps the residual stream to itself.
type Segment interface {
	// Forward takes the stream x [N, D] to the stream after the segment, [N, D]; both outlive the segment's block.
	Forward(t *Tape, x *Var, seq *Sequence) *Var
}

// A Sequence says where the tokens of the batch stand.
type Sequence struct {
	Pos  tensor.Tensor // [N] I32: position of each token within its document, for RoPE
	Mask device.Mask   // which keys each token sees

	Cache *Cache // what the layers have of the tokens before; nil if there are none

	Noise Noise // keys what training drops

	// What blocks read beside the stream, for the families that need it; the model sets them.
	IDs   *tensor.Tensor // [N] I32: the tokens
	First *Var           // [N, D]: the stream before the first block, as Remember returned it
}

// Block runs s and drops its temporary values; in backward it drops the temporary values and gradients of s again, and
// with them what was kept for it. Everything that treats a block as a unit (recomputing it, sharding it, skipping it)
// wraps here.
func (t *Tape) Block(s Segment, x *Var, seq *Sequence) *Var {
	mark := t.temp.Mark()
	first := t.varN
	if !t.grad {
		out := s.Forward(t, x, seq)
		t.temp.Release(mark)
		return out
	}
	t.reserve(x)
	begin := t.node()
	begin.back = endBlockBackward
	begin.firstVar, begin.tempMark, begin.keepMark = first, mark, t.keep.Mark()
	out := s.Forward(t, x, seq)
	if out.maker != nil {
		panic("autograd: a block returned a temporary value, which is only valid within the block")
	}
	begin.lastVar = t.varN
	t.drop(begin)
	return out
}

// endBlockBackward runs when the backward of a block is complete: its first node comes last.
func endBlockBackward(t *Tape, n *node) {
	t.drop(n)
	t.keep.Release(n.keepMark)
}

// drop releases the temporaries of a block; those that can be made again are marked gone.
func (t *Tape) drop(block *node) {
	t.temp.Release(block.tempMark)
	for _, v := range t.vars[block.firstVar:block.lastVar] {
		v.gone = v.maker != nil
	}
}

// node returns a cleared node at the end of the tape.
func (t *Tape) node() *node {
	if t.nodeN == len(t.nodes) {
		t.nodes = append(t.nodes, new(node))
	}
	n := t.nodes[t.nodeN]
	t.nodeN++
	*n = node{}
	return n
}

// wrap returns a variable around value.
func (t *Tape) wrap(value tensor.Tensor) *Var {
	if t.varN == len(t.vars) {
		t.vars = append(t.vars, new(Var))
	}
	v := t.vars[t.varN]
	t.varN++
	*v = Var{Value: value}
	return v
}

// kept allocates a tensor that lives until Reset, if the tape records; otherwise until the block ends.
func (t *Tape) kept(dtype tensor.DType, shape ...int) tensor.Tensor {
	if !t.grad {
		return t.temp.New(dtype, shape...)
	}
	return t.keep.New(dtype, shape...)
}

// keptRef is kept behind a reused pointer, for nodes and device calls.
func (t *Tape) keptRef(dtype tensor.DType, shape ...int) *tensor.Tensor {
	return t.ref(t.kept(dtype, shape...))
}

// ref gives a tensor header that lives until Reset a pointer, without allocating.
func (t *Tape) ref(x tensor.Tensor) *tensor.Tensor {
	if t.tensorN == len(t.tensors) {
		t.tensors = append(t.tensors, new(tensor.Tensor))
	}
	p := t.tensors[t.tensorN]
	t.tensorN++
	*p = x
	return p
}

// take marks v as consumed: its memory now belongs to the result of the operation. Using v afterwards is a programming
// error, and so is consuming a temporary, whose memory ends with the block while the result may not.
func (t *Tape) take(v *Var) tensor.Tensor {
	if v.used {
		panic("autograd: a value was used after an operation consumed it")
	}
	if v.maker != nil {
		panic("autograd: a temporary value cannot be modified in place")
	}
	t.settle(v)
	v.used = true
	return v.Value
}

// takeStream makes the variable that follows v on the residual stream: v's memory, consumed, and the room of its gradient.
func (t *Tape) takeStream(v *Var) *Var {
	out := t.wrap(t.take(v))
	out.room = v.room
	return out
}

// value returns v's tensor, computing it again if its block has dropped it.
func (t *Tape) value(v *Var) *tensor.Tensor {
	if v.used {
		panic("autograd: a value was used after an operation consumed it")
	}
	if v.gone {
		v.gone = false
		if v.maker.segment == nil { // a segment brings its own
			v.Value = t.temp.New(v.Value.DType(), v.Value.Shape()...)
		}
		v.maker.again(t, v.maker)
	}
	t.settle(v)
	return &v.Value
}

// valueAgain is value for the backward of an operation that has added to v's gradient. If the operation that made v can bring the
// value along with the gradient of its operand, its backward runs now, and the value takes the place of the gradient: one pass
// over memory instead of two. Another use of v, whose gradient would come too late, is a programming error.
func (t *Tape) valueAgain(v *Var) *tensor.Tensor {
	if v.gone && v.maker.brings {
		v.Value, v.gone, v.spent = v.grad, false, true
		v.maker.back(t, v.maker)
		v.maker.back = done
	}
	return t.value(v)
}

// done is the backward of an operation whose backward has run.
func done(*Tape, *node) {}

// gradOf returns v's gradient, and whether it already holds a sum that the caller must add to.
func (t *Tape) gradOf(v *Var) (g *tensor.Tensor, add bool) {
	if v.spent {
		panic("autograd: a value has a second use after its gradient was passed on")
	}
	if v.grad.IsZero() {
		v.grad = t.temp.New(v.Value.DType(), v.Value.Shape()...)
		return &v.grad, false
	}
	return &v.grad, true
}

// onlyGrad returns the gradient buffer of a value that nothing has written yet, for kernels that overwrite it.
func (t *Tape) onlyGrad(v *Var) *tensor.Tensor {
	g, add := t.gradOf(v)
	if add {
		panic("autograd: a value has a second use, but this gradient kernel cannot accumulate")
	}
	return g
}

// elementwise returns what the gradient kernel of the elementwise operation n reads and writes: the operand and room for its
// gradient, which takes the operand's place, and the gradient of the result and room for the result, in its place, if that is to
// come back; else nil.
func (t *Tape) elementwise(n *node) (dx, act, dact, x *tensor.Tensor) {
	if !n.x.grad.IsZero() {
		panic("autograd: a value has a second use, but this gradient kernel cannot accumulate")
	}
	x = t.value(n.x)
	n.x.grad, n.x.used = n.x.Value, true
	if n.out.spent {
		act = &n.out.Value
	}
	return &n.x.grad, act, &n.out.grad, x
}

// streamGrad returns the gradient buffer of the residual stream at v, cleared if it is new. It outlives blocks.
func (t *Tape) streamGrad(v *Var) *tensor.Tensor {
	if v.grad.IsZero() {
		t.reserve(v)
		v.grad = v.room
		t.Device.Zero(&v.grad)
	}
	return &v.grad
}

// reserve finds memory for the gradient of the residual stream at v. Blocks do so before they keep anything, so that what
// they keep can be released before the gradient is.
func (t *Tape) reserve(v *Var) {
	if v.room.IsZero() {
		v.room = t.keep.New(v.Value.DType(), v.Value.Shape()...)
	}
}

// sumGrad returns p's gradient for kernels that only add, cleared if this is the first write of the step.
func (t *Tape) sumGrad(p *Param) *tensor.Tensor {
	if !p.written {
		t.Device.Zero(&p.Grad)
		p.written = true
	}
	return &p.Grad
}

// weightGrad adds dyᵀ·x to p's gradient: dy [N, O], x [N, I], p [O, I].
func (t *Tape) weightGrad(p *Param, dy, x *tensor.Tensor) {
	t.Device.MatMul(&p.Grad, dy, x, device.TN, device.MatMulOptions{Operand: t.Types.Operand, Accumulate: p.written})
	p.written = true
}

// inputGrad adds dy·w to the gradient of x: dy [N, O], w [O, I], x [N, I].
func (t *Tape) inputGrad(x *Var, dy *tensor.Tensor, w *Param) {
	g, add := t.gradOf(x)
	opt := device.MatMulOptions{Operand: t.Types.Operand}
	if !add {
		t.Device.MatMul(g, dy, &w.Value, device.NN, opt)
		return
	}
	part := t.ref(t.temp.New(g.DType(), g.Shape()...))
	t.Device.MatMul(part, dy, &w.Value, device.NN, opt)
	t.Device.Add(g, part)
}
