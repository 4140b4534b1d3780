package model

import (
	"errors"

	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// A Batcher passes new tokens of several sequences through a model together, so that the weights are read once for all
// of them: continuous batching (Yu et al. 2022, Orca). Linear layers are products [N, D] over the tokens of all
// sequences. Attention runs sequence by sequence; each sequence has its own cache, called a slot.
//
//	memory   the caches of all slots (cache.go), and activations and logits of one pass
//
// The logits of a token are a function of its sequence alone: the same bits whatever else is in the pass, and however
// the sequence is cut into passes.
type Batcher struct {
	*passes
	held   []held // of each slot
	tokens int
}

// ErrNoCache means that a model under a precision policy cannot keep keys and values.
var ErrNoCache = errors.New("with FP8 scales of the current tensor the numbers of a token depend on the others in " +
	"its batch, so that several sequences cannot share one")

// NewBatcher allocates a Batcher with the given number of slots and with passes of at most the given number of tokens;
// Close frees its memory.
func NewBatcher(m *Decoder, p precision.Policy, dev device.Device, slots, tokens int) (*Batcher, error) {
	if !m.remembers(p) {
		return nil, ErrNoCache
	}
	x, err := newPasses(m, p, dev, slots, tokens, tokens)
	if err != nil {
		return nil, err
	}
	x.copyWeights()
	return &Batcher{passes: x, held: make([]held, slots), tokens: tokens}, nil
}

// BatcherBytes returns the memory that NewBatcher takes, and how much of it is keys and values; 0 for a model that
// cannot keep them.
func BatcherBytes(m *Decoder, p precision.Policy, dev device.Properties, slots, tokens int) (all, cache int64) {
	if !m.remembers(p) {
		return 0, 0
	}
	f := measurePasses(m.Config, p, 1, tokens, tokens)
	cache = int64(f.Cache) * int64(slots)
	return int64(f.Keep+f.Temp+f.Batch+copyBytes(m.copiedFor(p, dev))) + cache, cache
}

// WeightBytes returns the least number of bytes of weights that a pass reads. It leaves out experts, and an embedding
// that is not also the head: of these a pass reads only what its tokens need.
func (b *Batcher) WeightBytes() (n int64) {
	m := b.model
	for _, w := range m.params {
		switch r := b.tape.Rounded[&w.Param]; {
		case r != nil:
			n += int64(r.Bytes())
		case w.Role != nn.Embedding || w == m.head:
			n += int64(w.Value.Bytes())
		}
	}
	return n
}

// Slots returns the number of slots.
func (b *Batcher) Slots() int { return len(b.held) }

// Tokens returns how many tokens a pass takes.
func (b *Batcher) Tokens() int { return b.tokens }

// Common returns how many tokens at the start of ids are in the cache of a slot. The first stretch of the sequence may
// begin after them.
func (b *Batcher) Common(slot int, ids []int32) int {
	return b.held[slot].common(b.caches[slot], ids, 1)
}

// Room returns how many guessed tokens, at most most, a slot's next stretch may add after the first n tokens of its
// sequence. If the guesses are wrong, the stretch after that can still begin at n.
func (b *Batcher) Room(slot, n, most int) int { return room(b.caches[slot], n, most) }

// Run passes the stretches, at most one per slot, through the model. It returns the logits [R, V] that they ask for,
// in the order of the stretches, or nil if they ask for none. The logits are in host memory and valid until the next
// call. The cache of a slot must hold the tokens of its stretch before First (see Common); First = 0 begins a new
// sequence. No sequence may be longer than the context.
func (b *Batcher) Run(list []Stretch) *tensor.Tensor {
	for i := range list {
		s := &list[i]
		h := &b.held[s.Slot]
		h.cut(s.First)
		h.extend(s.IDs[s.First:])
	}
	logits := b.run(list)
	if logits == nil {
		return nil
	}
	return device.OnHost(b.tape.Device, logits)
}
