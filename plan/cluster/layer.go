package cluster

import "anneal/hardware"

// A cost is the time of a part of the model for one micro-batch, in seconds. Messages that are not hidden behind
// computation are listed separately.
type cost struct {
	forward, input, weights float64 // computing
	core                    float64 // part of forward: the core of attention
	products                float64 // part of forward: products with weights
	ends                    float64 // forward passes of embedding and head, which are not recomputed

	tensorForward, tensorBackward float64 // exposed messages
	otherForward, otherBackward   float64
	repeated                      float64 // part of otherForward that full recomputation repeats
}

func (c *cost) add(d cost) {
	c.forward, c.input, c.weights = c.forward+d.forward, c.input+d.input, c.weights+d.weights
	c.core, c.products = c.core+d.core, c.products+d.products
	c.tensorForward, c.tensorBackward = c.tensorForward+d.tensorForward, c.tensorBackward+d.tensorBackward
	c.otherForward, c.otherBackward = c.otherForward+d.otherForward, c.otherBackward+d.otherBackward
	c.repeated += d.repeated
}

// gradientPass is the ratio of bytes that a pass moves backward to those forward. Backward reads the inputs and the
// gradient of the outputs, and writes the gradient of the inputs.
const gradientPass = 1.5

// linear adds a product of rows tokens with a weight of [in, out], and the passes that its formats need.
func (r *Run) linear(c *cost, a machine, rows, in, out, count int) {
	p := a.Computes(r.Mesh.Precision)
	forward := a.product(rows, out, in, count, p)
	input := a.product(rows, in, out, count, p)
	weights := a.product(in, out, rows, count, p)
	weights += a.seconds(float64(count) * float64(in) * float64(out) * 8) // FP32 sums are read and written
	if p == hardware.FP8 || p == hardware.FP4 {                           // operands are cast, and cast transposed
		n := float64(rows) * float64(count)
		forward += a.pass(4 * n * float64(in))
		input += a.pass(4 * n * float64(out))
	}
	c.forward, c.input, c.weights = c.forward+forward, c.input+input, c.weights+weights
	c.products += forward
}

// moves adds a pass over bytes, and its gradient.
func (c *cost) moves(a machine, bytes float64) {
	c.forward += a.pass(bytes)
	c.input += a.pass(gradientPass * bytes)
}

// layer returns the cost of layer i.
func (r *Run) layer(i int, a machine) cost {
	var c cost
	s, m, rows := r.repeated(), r.Mesh, r.tokens()
	stream := 2 * float64(rows) * float64(s.Dim) // bytes of the residual stream
	if m.Sequence {
		stream /= float64(m.Tensor)
	}
	passes := 1.0
	if r.Stack.Eager {
		passes = 1.5
	}
	c.moves(a, 2*stream*passes) // norm
	for _, p := range s.projections() {
		in, out := p.in, p.out
		switch {
		case p.cut && p.rows:
			in = ceil(in, m.Tensor)
		case p.cut:
			out = ceil(out, m.Tensor)
		}
		r.linear(&c, a, rows, in, out, 1)
	}
	if s.Rotary {
		c.moves(a, 4*float64(rows)*float64((s.Heads+s.kv())*s.queryDim())/float64(m.Tensor))
	}
	r.core(&c, a)
	c.moves(a, (3+maskPass(s.Dropout))*stream*passes) // residual sum
	if !s.Side {
		c.moves(a, 2*stream*passes)
	}
	r.mlp(&c, a, i, passes)
	c.moves(a, (3+maskPass(s.Dropout))*stream*passes)
	r.layerMessages(&c, a, i)
	return c
}

// maskPass is the cost that dropout adds to a pass over two-byte values: a mask of one byte each.
func maskPass(dropout bool) float64 {
	if dropout {
		return 0.5
	}
	return 0
}

// mlp adds the MLP of layer i, or its experts.
func (r *Run) mlp(c *cost, a machine, i int, passes float64) {
	s, m, rows := &r.Shape, r.Mesh, r.tokens()
	wide := func(rows, ffn, count int) { // products of one MLP, and its activation
		inner := ffn
		if s.Gated {
			inner = 2 * ffn
		}
		r.linear(c, a, rows, s.Dim, inner, count)
		c.moves(a, 2*float64(rows*count)*float64(inner+ffn)*passes)
		r.linear(c, a, rows, ffn, s.Dim, count)
	}
	if !s.hasExperts(i) {
		wide(rows, ceil(s.FFN, m.Tensor), 1)
		return
	}
	routed := rows * s.TopK // rows on this rank after each token was copied to its experts
	local := max(1, s.Experts/max(m.Expert, 1))
	if m.Sequence {
		routed /= m.Tensor
	}
	r.linear(c, a, rows, s.Dim, s.Experts, 1)
	wide(max(1, routed/local), s.ExpertFFN, local)
	c.moves(a, 2*4*2*float64(routed)*float64(s.Dim)) // sorted by expert and back, on both sides of the exchange
	if s.SharedFFN > 0 {
		wide(rows, ceil(s.SharedFFN, m.Tensor), 1)
	}
}

// core adds scores, softmax and weighted values.
func (r *Run) core(c *cost, a machine) {
	s, m := &r.Shape, r.Mesh
	heads := float64(s.Heads) / float64(m.Tensor)
	length := float64(s.Context)
	pairs := float64(m.Micro) * heads * length * float64(s.seen()) / float64(m.Context)
	if r.Stack.Attention != "unfused" {
		const tile = 128 // the diagonal's tiles are computed whole
		flops := pairs * float64(s.queryDim()+s.valueDim()) * (1 + tile/float64(s.seen()))
		head := min(s.queryDim(), s.valueDim())
		c.core = a.attend(r.Stack.Attention, flops, head)
		c.forward += c.core
		c.input += a.attend(r.Stack.Attention, 2.5*flops, head)
		return
	}
	groups := max(1, int(float64(m.Micro)*heads))
	rows := s.Context / m.Context
	scores := a.product(rows, s.Context, s.queryDim(), groups, hardware.BF16)
	values := a.product(rows, s.valueDim(), s.Context, groups, hardware.BF16)
	softmax, drop := a.pass(4*pairs), 0.0
	if s.Dropout {
		drop = a.pass(5 * pairs)
	}
	c.core = scores + values + softmax + drop
	c.forward += c.core
	c.input += 2*(scores+values) + gradientPass*softmax + drop
}

// ends returns the cost of the embedding and of the head with its loss. Logits are in FP32.
func (r *Run) ends(a machine) (enter, leave cost) {
	s, rows := &r.Shape, r.tokens()
	enter.moves(a, 4*float64(rows)*float64(s.Dim))
	vocab := ceil(s.Vocab, r.Mesh.Tensor)
	bf16 := *r
	bf16.Mesh.Precision = hardware.BF16
	bf16.linear(&leave, a, rows, s.Dim, vocab, 1)
	logits := float64(rows) * float64(vocab)
	leave.forward += a.pass(12 * logits)
	leave.input += a.pass(8 * logits)
	return enter, leave
}

func ceil(n, parts int) int { return (n + parts - 1) / max(parts, 1) }
