package model

import (
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// A Generator continues token sequences with a model. It keeps the keys and values of the tokens that it has
// processed (cache.go), so that each new token costs a forward pass of one token.
type Generator struct {
	*passes
	sampler Sampler
	held    held
	one     [1]Stretch // of a pass
}

// NewGenerator allocates a Generator; Close frees its memory.
func NewGenerator(m *Decoder, p precision.Policy, dev device.Device) (*Generator, error) {
	return makeGenerator(m, p, dev, m.remembers(p))
}

func makeGenerator(m *Decoder, p precision.Policy, dev device.Device, cached bool) (*Generator, error) {
	slots, tokens := 0, m.Config.Context
	if cached {
		slots, tokens = 1, min(tokens, maxChunk)
	}
	x, err := newPasses(m, p, dev, slots, tokens, 1)
	if err != nil {
		return nil, err
	}
	return &Generator{passes: x}, nil
}

// Logits returns the logits [1, V] of the token that follows ids, in the policy's master format and in host memory.
// If ids is longer than the model's context, only its end is used (see InSight). The logits are a function of ids
// alone, independent of earlier calls, and valid until the next call. ids needs at least one id, and all ids must be
// below V.
func (g *Generator) Logits(ids []int32) *tensor.Tensor {
	return device.OnHost(g.tape.Device, g.logits(ids))
}

// logits is Logits in device memory.
func (g *Generator) logits(ids []int32) *tensor.Tensor {
	ids = InSight(ids, g.model.Config.Context)
	if len(g.caches) == 0 {
		return g.pass(ids, 0, 1)
	}
	first := g.held.keep(g.caches[0], ids)
	for len(ids)-first > maxChunk {
		g.pass(ids[:first+maxChunk], first, 0)
		first += maxChunk
	}
	if first > 0 && len(ids)-first == 1 {
		g.copyWeights()
	}
	return g.pass(ids, first, 1)
}

// pass passes the tokens of ids from first on through the model, and returns the logits of the last ones.
func (g *Generator) pass(ids []int32, first, logits int) *tensor.Tensor {
	g.one[0] = Stretch{IDs: ids, First: first, Logits: logits}
	return g.run(g.one[:])
}
