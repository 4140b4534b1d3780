package model

import (
	"anneal/autograd"
	"anneal/nn"
)

// A branch is a part of a block that adds to the residual stream. All families are made of it:
//
//	x ← x + after(body(before(x))·Wᵀ)
type branch struct {
	before *nn.Param        // [D]: gain of the norm before the body; nil for none
	body   autograd.Segment // maps the normalised stream [N, D] to the inputs of the projection [N, I]
	out    *nn.Param        // [D, I]: W; nil if the body projects by itself, to [N, D]
	after  *nn.Param        // [D]: gain of the norm after the projection; nil for none
	eps    float64

	drop autograd.Drop // dropout of what is added, and stochastic depth (depth.go)
}

// Forward adds the branch to the stream x [N, D], unless training drops it.
func (b *branch) Forward(t *autograd.Tape, x *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	if t.Dropped(b.drop, seq) {
		return x
	}
	var h *autograd.Var
	if b.before != nil {
		h = norm(t, x, &b.before.Param, b.eps) // ~[N, D]  keeps the rows before the gain
	} else {
		h = t.ReadStream(x) //  [N, D]
	}
	h = t.Gather(h)                // ~[N, D]  of all tokens; the stream may hold only this rank's tokens
	a := b.body.Forward(t, h, seq) //  [N, I]
	if b.out == nil {
		return t.AddStream(x, t.Sum(a), b.drop, seq) // [N, D]  in place
	}
	if b.after == nil {
		return t.AddBranch(x, a, &b.out.Param, b.drop, seq) // [N, D]  in place, from the accumulators
	}
	y := norm(t, t.Project(a, &b.out.Param), &b.after.Param, b.eps) // ~[N, D]
	return t.AddStream(x, y, b.drop, seq)                           //  [N, D]  in place
}

// norm is LayerNorm if the gain has a bias, else RMSNorm, of x [N, D].
func norm(t *autograd.Tape, x *autograd.Var, gain *autograd.Param, eps float64) *autograd.Var {
	if gain.Bias != nil {
		return t.LayerNorm(x, gain, eps)
	}
	return t.RMSNorm(x, gain, eps)
}

// feedForward is the body of a block's second branch: activation(x·Wᵀ).
type feedForward struct {
	up       *nn.Param // [F, D]; [2F, D] with a gate
	activate activation
}

// Forward returns the hidden units [N, F] for the normalised stream h [N, D].
func (m *feedForward) Forward(t *autograd.Tape, h *autograd.Var, _ *autograd.Sequence) *autograd.Var {
	return m.activate(t, t.Linear(h, &m.up.Param)) // [N, F] or [N, 2F], then ~[N, F]
}

// attentionBranch declares the first branch of a layer.
func (b *builder) attentionBranch() (*attention, *branch) {
	r := &branch{before: b.norm("attention_norm"), eps: b.config.NormEps}
	a := newAttention(b)
	r.body, r.out = a, a.wo
	return a, r
}

// activation is an operation of the tape on rows of activations.
type activation func(*autograd.Tape, *autograd.Var) *autograd.Var

// gatedMLP declares the second branch of a layer with a gate: three matrices.
func (b *builder) gatedMLP(f activation) *branch { return b.mlp("mlp.gate_up", f, b.gateUpParts()...) }

func (b *builder) gateUpParts() []nn.Part {
	n := b.config.FFN
	return []nn.Part{{Name: "gate", Rows: n}, {Name: "up", Rows: n}}
}

// plainMLP declares the second branch of a layer without a gate: two matrices.
func (b *builder) plainMLP(f activation) *branch {
	return b.mlp("mlp.up", f, nn.Part{Name: "up", Rows: b.config.FFN})
}

func (b *builder) mlp(name string, f activation, parts ...nn.Part) *branch {
	before := b.norm("mlp_norm")
	r := b.mlpBody(name, f, parts...)
	r.before = before
	return r
}

// mlpBody is mlp without a norm.
func (b *builder) mlpBody(name string, f activation, parts ...nn.Part) *branch {
	r := &branch{eps: b.config.NormEps}
	r.body = &feedForward{b.columnParallel(name, b.ffn, 1, parts...), f}
	r.out = b.rowParallel("mlp.down", b.config.FFN, b.ffn, 1)
	return r
}
