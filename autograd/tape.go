package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Types are the storage formats of a precision policy.
type Types struct {
	Stream     tensor.DType // the residual stream and its gradient
	Activation tensor.DType // results of layers, and their gradients
	Operand    tensor.DType // rounding of matrix operands
	Stat       tensor.DType // norms, log-sum-exps, losses, gradients of parameters
	FP8        bool         // whether layers with FP8 scales (Param.FP8) multiply FP8 operands
	FP8Heads   bool         // whether attention does, too (QuantizeHeads)
}

// narrow reports whether products round their operands to the storage format of activations, so that storing an
// operand in that format changes no bits.
func (t Types) narrow() bool { return t.Operand == t.Activation && t.Activation != t.Stream }

// A Tape records operations on a device. After warm-up it allocates nothing on the Go heap: variables, nodes and
// tensor headers are reused between steps. It must be used from one goroutine.
type Tape struct {
	Device device.Device
	Types  Types
	// LogitBytes is the memory that HeadLoss may use for logits, if larger than the default.
	LogitBytes int
	// LossScale multiplies the gradient of the loss before it is rounded to Types.Activation; 0 means 1.
	LossScale float64
	// Untargeted is the share of the tokens that have no target. The losses of routers, which all tokens have, are
	// scaled by the rest, because the caller divides gradients by the number of targets.
	Untargeted float64
	// Rounded holds rounded copies of weights for generation; it may be nil.
	Rounded Rounded
	// Routing has the losses of the routers in the forward passes since Reset.
	Routing Routing
	// Tensor holds the peers that layers are cut among (tensor parallelism), Context the peers that the tokens of a
	// sequence are cut among (context parallelism); nil for none.
	Tensor, Context Peers
	// Deferred, unless nil, receives the products of backward that can be computed later.
	Deferred *Deferred
	// Inputs, unless nil, stores the inputs of recomputed segments in place of the tape.
	Inputs SegmentInputs
	// Ring selects ring attention instead of Ulysses for Context. The model reads it.
	Ring bool
	// Sequence says that each peer of Tensor has only the stream of its share of the tokens (sequence parallelism).
	Sequence bool

	keep      *tensor.Arena // released when the backward of its block is done
	temp      *tensor.Arena // released at the end of a block
	grad      bool          // whether to record
	train     bool          // whether this is a training step
	rerunning bool          // backward reruns a segment; statistics count only its first run
	held      bool          // backward releases nothing, because products are deferred
	pending   *node         // the last addition to the stream in a rerun, not done until the sum is read

	nodes   []*node
	nodeN   int
	vars    []*Var
	varN    int
	tensors []*tensor.Tensor
	tensorN int
	params  []*Param // of ScaleParam
	paramN  int
	routes  []*routed // of Experts
	routedN int
	squares device.Squares
	parcel  []tensor.Tensor // of spread and collect
	shares  map[*device.Layout]*device.Layout
	meeting meeting
	largest *largest         // of FP8
	teacher device.Teacher   // of a chunk
	pairs   [2]tensor.Tensor // of Previous: tokens and positions
}

// A Var is a value on the tape.
type Var struct {
	Value    tensor.Tensor
	grad     tensor.Tensor
	gradMem  tensor.Tensor // memory for the gradient, on the stream between blocks
	producer *node         // recomputes Value in backward, if it is temporary; else nil
	dropped  bool          // temporary, and its memory was released
	consumed bool          // an operation took over its memory
	inGrad   bool          // Value was recomputed in the memory of its gradient, which was complete
	inBlock  bool          // in the format of the stream but not on it: its gradient ends with the block
	wide     bool          // its gradient, a sum over peers, is in the format of the stream
}

// A Param is a trained tensor. Gradients of all micro-batches of a step add up in Grad; the first one overwrites it.
type Param struct {
	Value, Grad tensor.Tensor
	FP8         *FP8     // scales of a linear layer that can multiply FP8 operands; else nil
	Bias        *Param   // added to the result of a linear layer or a norm; may be nil
	Cut         Cut      // how this rank's part is cut from a weight
	Rows        Rows     // of a table whose rows are cut
	Frozen      bool     // not trained; without memory for Grad it has no gradient
	Adapter     *Adapter // of a linear layer; may be nil
	Terms       bool     // its gradient is a sum over peers, taken when the backward pass of its unit ends
	written     bool
}

// ResetGrad starts an optimizer step: the next gradient overwrites Grad.
func (p *Param) ResetGrad() { p.written = false }

// HasGrad reports whether a gradient was written since ResetGrad.
func (p *Param) HasGrad() bool { return p.written }

// Redirect makes g the gradient from now on. If written, g holds a sum to which the next gradient is added; else the
// next gradient overwrites it.
func (p *Param) Redirect(g tensor.Tensor, written bool) { p.Grad, p.written = g, written }

// node is a recorded operation. All operations share one struct, so that recording does not allocate.
type node struct {
	backward  func(*Tape, *node)
	recompute func(*Tape, *node)
	fused     bool // backward also recomputes the value of out, if out.inGrad

	x, y, out *Var
	gate      *Var
	w, w2     *Param
	routed    *routed
	saved     [3]*tensor.Tensor
	tables    [3]*tensor.Tensor // owned by the caller
	heads     device.Heads
	mask      device.Mask
	global    *GlobalTokens
	factor    float64

	firstVar, lastVar  int // of a block
	tempMark, keepMark int

	drop    device.Dropout
	segment Segment // to rerun
	seq     *Sequence
	begin   position // where the rerun starts
}

// NewTape returns a tape on d. Kept memory comes from keep, temporary memory from temp.
func NewTape(d device.Device, types Types, keep, temp *tensor.Arena) *Tape {
	return &Tape{Device: d, Types: types, keep: keep, temp: temp}
}

// Reset clears the tape and releases its memory. With grad, the following operations are a training step, recorded
// for Backward. Without grad, the tape keeps only what the forward pass needs, and drops nothing.
func (t *Tape) Reset(grad bool) {
	t.grad, t.train = grad, grad
	t.nodeN, t.varN, t.tensorN, t.paramN, t.routedN = 0, 0, 0, 0, 0
	t.Routing = Routing{}
	if t.Inputs != nil {
		t.Inputs.Reset()
	}
	t.keep.Release(0)
	t.temp.Release(0)
}

// Recording reports whether the tape records a training step.
func (t *Tape) Recording() bool { return t.grad }

// Backward runs the recorded operations in reverse. It adds the gradients of parameters to Param.Grad. An operation
// whose result does not reach a loss has no gradient and is skipped; its parameters get no gradient (Param.HasGrad).
func (t *Tape) Backward() { t.BackTo(0) }

// Mark returns the present end of the tape, for BackTo.
func (t *Tape) Mark() int { return t.nodeN }

// BackTo runs the operations recorded after mark in reverse, like Backward, and removes them. Between two calls the
// caller can do what belongs between the backward passes of two parts of a model, such as freeing weights.
func (t *Tape) BackTo(mark int) {
	if !t.grad {
		panic("autograd: Backward on a tape that was Reset without gradients")
	}
	if t.Deferred == nil {
		t.backTo(mark)
	} else {
		t.backHolding(mark)
	}
	t.nodeN = mark
}

// backTo runs the backward of the recorded operations from the last one down to number first.
func (t *Tape) backTo(first int) {
	for i := t.nodeN - 1; i >= first; i-- {
		n := t.nodes[i]
		if n.out != nil && n.out.grad.IsZero() {
			continue
		}
		n.backward(t, n)
	}
}

// A Segment is a part of a model that maps the residual stream to itself.
type Segment interface {
	// Forward maps the stream x [N, D] to the stream after the segment, [N, D]; both outlive the segment's block.
	Forward(t *Tape, x *Var, seq *Sequence) *Var
}

// A Sequence describes the tokens of a batch: positions, masks, cache and noise.
type Sequence struct {
	Pos  tensor.Tensor // [N] I32: position of each token within its document, for RoPE
	Mask device.Mask   // which keys each token sees
	// Parts describes the whole rows that the tokens are a part of (Tape.Context); nil if the batch has whole rows.
	Parts *Parts

	// Caches have the keys, values and states of earlier tokens, one for each sequence of the batch, whose new tokens
	// follow those of the sequence before; nil if there are none.
	Caches []*Cache

	// Branches lists the tokens of the batch that do not continue the tokens directly before them but a beginning
	// elsewhere (Tape.AttentionBranches); scoring uses them. The mask treats each branch as a document of its own.
	Branches []Branch

	Noise Noise // random numbers for dropout in training
	Runs  []Run // the tokens of the micro-batch in this batch, in order; nil for all

	// Other inputs of blocks, for the families that need them. The model sets them.
	IDs   *tensor.Tensor // [N] I32: the tokens
	Plain bool           // the losses of routers stay out of the gradients
	First *Var           // [N, D]: the stream before the first block, from Remember
}

// A Run is consecutive tokens of a micro-batch.
type Run struct{ First, Count int }

// Block runs s and drops its temporary values. In backward it again drops the temporary values and the gradients of s,
// and releases what was kept for them. Everything that treats a block as a unit, such as recomputing, sharding or
// skipping it, is done here.
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
	begin.backward = endBlockBackward
	begin.firstVar, begin.tempMark, begin.keepMark = first, mark, t.keep.Mark()
	out := s.Forward(t, x, seq)
	if out.producer != nil {
		panic("autograd: a block returned a temporary value, which is only valid within the block")
	}
	begin.lastVar = t.varN
	t.drop(begin)
	return out
}

// endBlockBackward runs when the backward of a block is complete, because the block's first node comes last.
func endBlockBackward(t *Tape, n *node) {
	if t.held { // deferred products read them
		return
	}
	t.drop(n)
	t.keep.Release(n.keepMark)
}

// drop releases the temporaries of a block and marks those that can be recomputed as dropped.
func (t *Tape) drop(block *node) {
	t.temp.Release(block.tempMark)
	for _, v := range t.vars[block.firstVar:block.lastVar] {
		v.dropped = v.producer != nil
	}
}

// node appends a cleared node to the tape.
func (t *Tape) node() *node {
	if t.nodeN == len(t.nodes) {
		t.nodes = append(t.nodes, new(node))
	}
	n := t.nodes[t.nodeN]
	t.nodeN++
	*n = node{}
	return n
}

// wrap returns a new variable with the given value.
func (t *Tape) wrap(value tensor.Tensor) *Var {
	if t.varN == len(t.vars) {
		t.vars = append(t.vars, new(Var))
	}
	v := t.vars[t.varN]
	t.varN++
	*v = Var{Value: value}
	return v
}

// kept allocates a tensor that lives until Reset if the tape records, else until the block ends.
func (t *Tape) kept(dtype tensor.DType, shape ...int) tensor.Tensor {
	if !t.grad {
		return t.temp.New(dtype, shape...)
	}
	return t.keep.New(dtype, shape...)
}

// keptRef is kept with a reused pointer, for nodes and device calls.
func (t *Tape) keptRef(dtype tensor.DType, shape ...int) *tensor.Tensor {
	return t.ref(t.kept(dtype, shape...))
}

// ref returns a pointer to a copy of the header x that lives until Reset, without allocating.
func (t *Tape) ref(x tensor.Tensor) *tensor.Tensor {
	if t.tensorN == len(t.tensors) {
		t.tensors = append(t.tensors, new(tensor.Tensor))
	}
	p := t.tensors[t.tensorN]
	t.tensorN++
	*p = x
	return p
}

// consume marks v as consumed and returns its tensor, whose memory now belongs to the result of the operation. It
// panics if v was consumed before, or is temporary: the memory of a temporary ends with the block, but the result may
// not.
func (t *Tape) consume(v *Var) tensor.Tensor {
	if v.consumed {
		panic("autograd: a value was used after an operation consumed it")
	}
	if v.producer != nil {
		panic("autograd: a temporary value cannot be modified in place")
	}
	t.addPending(v)
	v.consumed = true
	return v.Value
}

// consumeStream returns the variable that follows v on the stream: it takes over v's memory and its gradient's
// memory.
func (t *Tape) consumeStream(v *Var) *Var {
	out := t.wrap(t.consume(v))
	out.gradMem = v.gradMem
	return out
}

// value returns v's tensor, and recomputes it if the block has dropped it.
func (t *Tape) value(v *Var) *tensor.Tensor {
	if v.consumed {
		panic("autograd: a value was used after an operation consumed it")
	}
	if v.dropped {
		v.dropped = false
		if v.producer.segment == nil { // a segment allocates its own
			v.Value = t.temp.New(v.Value.DType(), v.Value.Shape()...)
		}
		v.producer.recompute(t, v.producer)
	}
	t.addPending(v)
	return &v.Value
}

// fusedValue is value for the backward of an operation that has added to v's gradient. If the operation that made v
// has a fused backward, that runs now and writes the value over v's gradient: one pass over memory instead of two. A
// later use of v, whose gradient would come too late, panics.
func (t *Tape) fusedValue(v *Var) *tensor.Tensor {
	if v.dropped && v.producer.fused {
		v.Value, v.dropped, v.inGrad = v.grad, false, true
		v.producer.backward(t, v.producer)
		v.producer.backward = backwardDone
	}
	return t.value(v)
}

// backwardDone replaces the backward of an operation that has already run.
func backwardDone(*Tape, *node) {}

// gradOf returns v's gradient, and whether it already holds a sum to which the caller must add.
func (t *Tape) gradOf(v *Var) (g *tensor.Tensor, add bool) {
	if v.inGrad {
		panic("autograd: a value has a second use after its gradient was passed on")
	}
	if v.grad.IsZero() {
		dtype := v.Value.DType()
		if v.wide {
			dtype = t.Types.Stream
		}
		v.grad = t.temp.New(dtype, v.Value.Shape()...)
		return &v.grad, false
	}
	return &v.grad, true
}

// onlyGrad returns v's gradient for kernels that overwrite it. It panics if the gradient already holds a sum.
func (t *Tape) onlyGrad(v *Var) *tensor.Tensor {
	g, add := t.gradOf(v)
	if add {
		panic("autograd: a value has a second use, but this gradient kernel cannot accumulate")
	}
	return g
}

// elementwise returns the arguments of the gradient kernel of the elementwise operation n: the gradient dx of the
// operand, which overwrites the operand x; the gradient dact of the result; and act, the memory for the recomputed
// result, which overwrites dact, or nil if the result is not needed.
func (t *Tape) elementwise(n *node) (dx, act, dact, x *tensor.Tensor) {
	if !n.x.grad.IsZero() {
		panic("autograd: a value has a second use, but this gradient kernel cannot accumulate")
	}
	x = t.value(n.x)
	n.x.grad, n.x.consumed = n.x.Value, true
	if n.out.inGrad {
		act = &n.out.Value
	}
	return &n.x.grad, act, &n.out.grad, x
}

// streamGrad returns the gradient of the residual stream at v, zeroed if it is new. It outlives blocks.
func (t *Tape) streamGrad(v *Var) *tensor.Tensor {
	if !v.grad.IsZero() {
		return &v.grad
	}
	if v.inBlock {
		v.grad = t.temp.New(v.Value.DType(), v.Value.Shape()...)
	} else {
		t.reserve(v)
		v.grad = v.gradMem
	}
	t.Device.Zero(&v.grad)
	return &v.grad
}

// reserve allocates memory for the gradient of the stream at v. Blocks call it before they keep anything, so that
// what they keep can be released before the gradient is.
func (t *Tape) reserve(v *Var) {
	if v.gradMem.IsZero() {
		v.gradMem = t.keep.New(v.Value.DType(), v.Value.Shape()...)
	}
}

// sumGrad returns p's gradient for kernels that only add, zeroed before the first write of the step.
func (t *Tape) sumGrad(p *Param) *tensor.Tensor {
	if !p.written {
		t.Device.Zero(&p.Grad)
		p.written = true
	}
	return &p.Grad
}

// weightGrad adds dyᵀ·x to p's gradient, at once or deferred: dy [N, O], x [N, I], p [O, I].
func (t *Tape) weightGrad(p *Param, dy, x *tensor.Tensor) {
	if t.Deferred != nil && !p.Terms {
		t.Deferred.list = append(t.Deferred.list, product{p, *dy, *x})
		return
	}
	t.multiplyGrad(p, dy, x)
}

// multiplyGrad is weightGrad without deferral.
func (t *Tape) multiplyGrad(p *Param, dy, x *tensor.Tensor) {
	t.Device.MatMul(&p.Grad, dy, x, device.TN, device.MatMulOptions{Operand: t.Types.Operand, Accumulate: p.written})
	p.written = true
}

// inputGrad adds dy·w to the gradient of x: dy [N, O], w [O, I], x [N, I].
func (t *Tape) inputGrad(x *Var, dy, w *tensor.Tensor) {
	g, add := t.gradOf(x)
	opt := device.MatMulOptions{Operand: t.Types.Operand}
	if !add {
		t.Device.MatMul(g, dy, w, device.NN, opt)
		return
	}
	part := t.ref(t.temp.New(g.DType(), g.Shape()...))
	t.Device.MatMul(part, dy, w, device.NN, opt)
	t.Device.Add(g, part)
}
