package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// A Batch is one micro-batch: N = rows·T tokens with their targets and the starts of their documents. The host fills
// Host and calls Send.
type Batch struct {
	Tokens, Targets tensor.Tensor // [N] I32; a target of −100 is not trained on
	Start           tensor.Tensor // [N] I32: position in the row at which the token's document begins
	Losses          tensor.Tensor // [N]: each token's cross-entropy, written by Loss
	LogZ            tensor.Tensor // [N]: log-sum-exp of each token's logits, 0 where ignored; written by Loss
	// if set, Loss writes to LogZ how far each target's logit is below the highest logit, instead of the log-sum-exp
	Behind bool
	ZLoss  float64 // coefficient of LogZ² in the gradients; Losses do not include it
	// if not zero, Loss replaces Targets by labels sampled from the model, and omits the z-loss
	Labels     tensor.RNG
	FirstLabel uint64          // position of the first token in the stream of Labels
	Teacher    *device.Teacher // another model's predictions, which the gradients follow too; nil for none
	Seq        autograd.Sequence
	read       autograd.Sequence // Seq for a teacher's forward pass
	T          int

	Host    HostBatch
	counted counted
	losses  *tensor.Tensor // result of HostLosses
}

// HostBatch holds the elements of a batch that the host writes, [N] each: the tensors' own elements if the host can
// access them.
type HostBatch struct{ Tokens, Targets, Start, Pos []int32 }

// NewBatch allocates a batch of rows sequences of t tokens.
func NewBatch(a *tensor.Arena, p precision.Policy, rows, t int) *Batch {
	n := rows * t
	b := &Batch{T: t}
	b.Tokens, b.Targets, b.Start = a.New(tensor.I32, n), a.New(tensor.I32, n), a.New(tensor.I32, n)
	b.Losses, b.LogZ = a.New(p.Master, n), a.New(p.Master, n)
	b.Seq.Pos = a.New(tensor.I32, n)
	b.counted.lay(a, n)
	b.Seq.IDs, b.Seq.Mask = &b.Tokens, device.Mask{Len: t, Start: &b.Start}
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

// Rows returns the first n rows of b as a batch in the same memory. It must not be cut among ranks.
func (b *Batch) Rows(n int) *Batch {
	n *= b.T
	c := *b
	for _, x := range []*tensor.Tensor{
		&c.Tokens, &c.Targets, &c.Start, &c.Losses, &c.LogZ, &c.Seq.Pos, &c.counted.place,
	} {
		*x = x.Slice(0, n)
	}
	for _, x := range []*[]int32{&c.Host.Tokens, &c.Host.Targets, &c.Host.Start, &c.Host.Pos, &c.counted.host[2]} {
		*x = (*x)[:min(n, len(*x))]
	}
	losses := b.losses.Slice(0, n)
	c.Seq.IDs, c.Seq.Mask.Start, c.losses = &c.Tokens, &c.Start, &losses
	return &c
}

// Send copies the host's elements to the device.
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
	if b.Seq.Parts != nil {
		b.Seq.Parts.Send(m)
	}
}

// HostLosses returns the losses in host memory, valid until the next call.
func (b *Batch) HostLosses(m device.Memory) *tensor.Tensor {
	if b.Losses.Apart() {
		m.Read(b.losses.Raw(), &b.Losses)
	} else {
		m.Wait() // a failure is kept for the next check
	}
	return b.losses
}

// HostBehind returns the differences that Loss writes if Behind is set, in host memory, valid until the next call.
func (b *Batch) HostBehind(m device.Memory) *tensor.Tensor {
	if !b.LogZ.Apart() {
		m.Wait()
		return &b.LogZ
	}
	m.Read(b.losses.Raw(), &b.LogZ)
	return b.losses
}

// Cut divides rows of row tokens into sequences of t tokens; t must divide row, and Start must hold positions in the
// rows. Only T and Start change, not the memory of the batch.
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

// Branch gives b a branch, to measure the memory that a batch with branches takes.
func (b *Batch) Branch() { b.Seq.Branches = []autograd.Branch{{Tokens: 1}} }

// SetPositions derives each token's position within its document from Start. Without documents every row is one
// document, and Start is cleared. The positions of a branch continue those of its beginning.
func (b *Batch) SetPositions(documents bool) {
	pos, start := b.Host.Pos, b.Host.Start
	if !documents {
		clear(start)
	}
	for i := range pos {
		pos[i] = int32(i%b.T) - start[i]
	}
	for _, s := range b.Seq.Branches {
		for i := range s.Tokens {
			pos[s.At+i] = int32(s.First + i)
		}
	}
}
