package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// A Batch is one micro-batch: N = rows·T tokens, what follows each, and where its document begins.
type Batch struct {
	Tokens, Targets tensor.Tensor // [N] I32; a target of −100 is not trained on
	Start           tensor.Tensor // [N] I32: position in the row at which the token's document begins
	Losses          tensor.Tensor // [N]: each token's cross-entropy, written by Loss
	LogZ            tensor.Tensor // [N]: log of the sum of each token's exponentiated logits, 0 where ignored, written by Loss
	ZLoss           float64       // coefficient of LogZ² in what gradients are of; Losses do not have it
	Labels          tensor.RNG    // unless zero, Loss replaces Targets by labels drawn from the model, and leaves the z-loss out
	FirstLabel      uint64        // number of the first token in the stream of Labels
	Seq             autograd.Sequence
	T               int
}

// NewBatch allocates a batch of rows sequences of t tokens.
func NewBatch(a *tensor.Arena, p precision.Policy, rows, t int) *Batch {
	n := rows * t
	b := &Batch{T: t}
	b.Tokens, b.Targets, b.Start = a.New(tensor.I32, n), a.New(tensor.I32, n), a.New(tensor.I32, n)
	b.Losses, b.LogZ = a.New(p.Master, n), a.New(p.Master, n)
	b.Seq.Pos = a.New(tensor.I32, n)
	b.Seq.Mask = device.Mask{Len: t, Start: &b.Start}
	return b
}

// Cut makes rows of row tokens into sequences of t, which divides row; Start must be that of the rows. The memory of the
// batch stays as it is: what changes is where a token's sequence and document begin.
func (b *Batch) Cut(row, t int) {
	b.T, b.Seq.Mask.Len = t, t
	if t == row {
		return
	}
	start := b.Start.I32()
	for i := range start {
		start[i] = max(start[i]-int32(i%row/t*t), 0)
	}
}

// SetPositions derives each token's position within its document from Start. Without documents every row is one: Start
// is cleared.
func (b *Batch) SetPositions(documents bool) {
	pos, start := b.Seq.Pos.I32(), b.Start.I32()
	if !documents {
		clear(start)
	}
	for i := range pos {
		pos[i] = int32(i%b.T) - start[i]
	}
}
