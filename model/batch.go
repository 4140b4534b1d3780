package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// A Batch is one micro-batch: N = rows·T tokens, what follows each, and where its document begins. The host writes Host and sends it.
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

	Host   HostBatch
	losses *tensor.Tensor // that HostLosses returns
}

// HostBatch is what the host writes of a batch, [N] each: the tensors' own elements where the host can touch them.
type HostBatch struct{ Tokens, Targets, Start, Pos []int32 }

// NewBatch allocates a batch of rows sequences of t tokens.
func NewBatch(a *tensor.Arena, p precision.Policy, rows, t int) *Batch {
	n := rows * t
	b := &Batch{T: t}
	b.Tokens, b.Targets, b.Start = a.New(tensor.I32, n), a.New(tensor.I32, n), a.New(tensor.I32, n)
	b.Losses, b.LogZ = a.New(p.Master, n), a.New(p.Master, n)
	b.Seq.Pos = a.New(tensor.I32, n)
	b.Seq.Mask = device.Mask{Len: t, Start: &b.Start}
	b.losses = &b.Losses
	switch {
	case a.Apart():
		b.Host = HostBatch{make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)}
		losses := tensor.View(p.Master, make([]byte, b.Losses.Bytes()), n)
		b.losses = &losses
	case a.Backed():
		b.Host = HostBatch{b.Tokens.I32(), b.Targets.I32(), b.Start.I32(), b.Seq.Pos.I32()}
	}
	return b
}

// Send hands what the host wrote to the device.
func (b *Batch) Send(m device.Memory) {
	if !b.Tokens.Apart() {
		return
	}
	for _, x := range []struct {
		to   *tensor.Tensor
		from []int32
	}{{&b.Tokens, b.Host.Tokens}, {&b.Targets, b.Host.Targets}, {&b.Start, b.Host.Start}, {&b.Seq.Pos, b.Host.Pos}} {
		m.Write(x.to, tensor.Of(x.from).Raw())
	}
}

// HostLosses returns the losses as the host can read them, until it is called again.
func (b *Batch) HostLosses(m device.Memory) *tensor.Tensor {
	if b.Losses.Apart() {
		m.Read(b.losses.Raw(), &b.Losses)
	} else {
		m.Wait() // a failure stays, for who asks next
	}
	return b.losses
}

// Cut makes rows of row tokens into sequences of t, which divides row; Start must be that of the rows. The memory of the
// batch stays as it is: what changes is where a token's sequence and document begin.
func (b *Batch) Cut(row, t int) {
	b.T, b.Seq.Mask.Len = t, t
	if t == row {
		return
	}
	start := b.Host.Start
	for i := range start {
		start[i] = max(start[i]-int32(i%row/t*t), 0)
	}
}

// SetPositions derives each token's position within its document from Start. Without documents every row is one: Start
// is cleared.
func (b *Batch) SetPositions(documents bool) {
	pos, start := b.Host.Pos, b.Host.Start
	if !documents {
		clear(start)
	}
	for i := range pos {
		pos[i] = int32(i%b.T) - start[i]
	}
}
