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
	guesser Guesser
	held    held
	one     [1]Stretch // of a pass
	drawn   []int32    // result of Draw
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
	x, err := newPasses(m, p, dev, slots, tokens, 1+maxGuesses*slots)
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
	return device.OnHost(g.tape.Device, g.logits(ids, 1))
}

// Next draws the token that follows ids, as a pure function of the sequence, the sampling and its seed. The sampling
// must be valid.
func (g *Generator) Next(ids []int32, s Sampling) int32 {
	return g.sampler.Next(g.Logits(ids), ids, s)
}

// Draw returns between one and most of the tokens that follow ids, in one pass. It guesses tokens and returns those
// that it guesses right, and one more. They are the tokens that as many calls of Next would return. The slice is valid
// until the next call.
func (g *Generator) Draw(ids []int32, s Sampling, most int) []int32 {
	n, text := len(ids), ids
	if len(g.caches) > 0 {
		text = g.guesser.Append(ids[:n:n], g.room(ids, most-1))
	}
	logits := device.OnHost(g.tape.Device, g.logits(text, len(text)-n+1))
	g.drawn = g.drawn[:0]
	for i := n; ; i++ {
		row := logits.Slice(i-n, i-n+1)
		id := g.sampler.Next(&row, text[:i], s)
		g.drawn = append(g.drawn, id)
		if i == len(text) || text[i] != id {
			break
		}
	}
	if len(text) > n {
		g.guesser.Right(len(g.drawn) - 1)
	}
	return g.drawn
}

// room returns how many tokens, at most most, may be guessed after ids without moving the start of the text that the
// model sees.
func (g *Generator) room(ids []int32, most int) int {
	seen := len(InSight(ids, g.model.Config.Context))
	return room(g.caches[0], seen, min(most, g.model.Config.Context-seen))
}

// logits returns the logits of the tokens that follow the last rows of ids, in device memory.
func (g *Generator) logits(ids []int32, rows int) *tensor.Tensor {
	ids = InSight(ids, g.model.Config.Context)
	if len(g.caches) == 0 {
		return g.pass(ids, 0, rows)
	}
	first := g.held.keep(g.caches[0], ids, rows)
	for len(ids)-first > maxChunk {
		g.pass(ids[:first+maxChunk], first, 0)
		first += maxChunk
	}
	if first > 0 && len(ids)-first <= 1+maxGuesses {
		g.copyWeights()
	}
	return g.pass(ids, first, rows)
}

// pass passes the tokens of ids from first on through the model, and returns the logits of the last ones.
func (g *Generator) pass(ids []int32, first, logits int) *tensor.Tensor {
	g.one[0] = Stretch{IDs: ids, First: first, Logits: logits}
	return g.run(g.one[:])
}
