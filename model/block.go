package model

import (
	"anneal/autograd"
	"anneal/nn"
)

// block is a layer: branches on the residual stream, one after the other.
type block struct {
	attention *attention
	mix       *nn.Param // [2]: weights of the stream and of its first value; nil for none
	branches  []*branch
	params    []*nn.Param // in the order of the model's list
}

// Forward runs the block's branches on the stream x [N, D].
func (b *block) Forward(t *autograd.Tape, x *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	if b.mix != nil {
		x = t.MixStreams(x, seq.First, &b.mix.Param) // [N, D]
	}
	for _, r := range b.branches {
		x = r.Forward(t, x, seq) // [N, D]
	}
	return x
}
