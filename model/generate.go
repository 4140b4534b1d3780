package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// A Generator continues token sequences with a model. It keeps the keys and values of the tokens that it has
// processed (cache.go), so that each new token costs a forward pass of one token.
type Generator struct {
	model  *Decoder
	policy precision.Policy
	tape   *autograd.Tape
	batch  *tensor.Arena
	arenas []*tensor.Arena
	probs  []candidate

	cache   *autograd.Cache // nil without a cache
	seen    []int32         // tokens in the cache
	written int             // positions written since the cache was reset

	matrices []*nn.Param // matrices whose rounded copies save time; see round
}

type candidate struct {
	id int32
	p  float64
}

// NewGenerator allocates a Generator; Close frees its memory.
func NewGenerator(m *Decoder, p precision.Policy, dev device.Device) (*Generator, error) {
	return makeGenerator(m, p, dev, m.remembers(p))
}

func makeGenerator(m *Decoder, p precision.Policy, dev device.Device, cached bool) (*Generator, error) {
	f := measureGeneration(m.Config, p, cached)
	g := &Generator{model: m, policy: p, matrices: m.roundable(p, cached)}
	rounded := tensor.NewMeasure("")
	for _, w := range g.matrices {
		rounded.New(p.Operand, w.Value.Shape()...)
	}
	for _, need := range []struct {
		name string
		size int
	}{
		{"activations", f.Keep}, {"scratch", f.Temp}, {"batch", f.Batch}, {"keys and values", f.Cache},
		{"rounded weights", rounded.Peak()},
	} {
		a, err := dev.NewArena(need.name, need.size)
		if err != nil {
			g.Close()
			return nil, err
		}
		g.arenas = append(g.arenas, a)
	}
	g.tape = autograd.NewTape(dev, p.Types(), g.arenas[0], g.arenas[1])
	g.batch = g.arenas[2]
	if cached {
		g.cache = m.newCache(p, g.arenas[3])
	}
	return g, nil
}

// Bytes returns the memory of the generator, and how much of it is keys and values.
func (g *Generator) Bytes() (all, cache int) {
	for _, a := range g.arenas {
		all += a.Size()
	}
	return all, g.arenas[3].Size()
}

// Close frees the generator's memory, but not the model's.
func (g *Generator) Close() {
	for _, a := range g.arenas {
		a.Close()
	}
	g.arenas = nil
}

// Logits returns the logits [1, V] of the token that follows ids, in the policy's master format and in host memory.
// If ids is longer than the model's context, only its end is used (see inSight). The logits are a function of ids
// alone, independent of earlier calls, and valid until the next call. ids needs at least one id, and all ids must be
// below V.
func (g *Generator) Logits(ids []int32) *tensor.Tensor {
	return device.OnHost(g.tape.Device, g.logits(ids))
}

// logits is Logits in device memory.
func (g *Generator) logits(ids []int32) *tensor.Tensor {
	ids = inSight(ids, g.model.Config.Context)
	if g.cache == nil {
		return g.run(ids, 0, true)
	}
	first := g.kept(ids)
	for len(ids)-first > maxChunk {
		g.run(ids[:first+maxChunk], first, false)
		first += maxChunk
	}
	return g.run(ids, first, true)
}

// round makes rounded copies of the matrices, for steps that mostly wait for reading them.
func (g *Generator) round() {
	if g.tape.Rounded != nil {
		return
	}
	g.tape.Rounded = autograd.Rounded{}
	for _, w := range g.matrices {
		r := g.arenas[4].New(g.policy.Operand, w.Value.Shape()...)
		g.tape.Device.Copy(&r, &w.Value)
		g.tape.Rounded[&w.Param] = &r
	}
}

// run passes the tokens of ids from first on through the model, and returns the logits of the last one if logits is
// set.
func (g *Generator) run(ids []int32, first int, logits bool) *tensor.Tensor {
	if first > 0 && len(ids)-first == 1 {
		g.round()
	}
	g.batch.Release(0)
	g.tape.Reset(false)
	return g.model.extend(g.tape, NewBatch(g.batch, g.policy, 1, len(ids)-first), ids, first, g.cache, logits)
}
