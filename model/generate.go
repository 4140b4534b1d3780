package model

import (
	"fmt"
	"math"
	"slices"

	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Sampling says how the next token is drawn from the model's distribution.
type Sampling struct {
	Temperature float64 // 0 takes the most likely token
	TopK        int     // keep the K most likely; 0 keeps all
	TopP        float64 // of what K leaves, keep the fewest most likely that together have this probability; 0 or 1 keeps all
	Seed        uint64
}

// Validate says which setting cannot be used, and what would.
func (s Sampling) Validate() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 0):
		return fmt.Errorf("temperature %v is not a number from 0 up\n  try 0 for the most likely token, 1 for the model's own distribution", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("top-k %d is negative\n  try 0 to keep all tokens, or 40", s.TopK)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return fmt.Errorf("top-p %v is not a probability\n  try 1 to keep all tokens, or 0.95", s.TopP)
	}
	return nil
}

// A Generator continues token sequences with a model. Each token costs a forward pass over all that the model sees of the
// sequence: keys and values are not kept between tokens.
type Generator struct {
	model  *Decoder
	policy precision.Policy
	tape   *autograd.Tape
	batch  *tensor.Arena
	arenas []*tensor.Arena
	probs  []candidate
}

type candidate struct {
	id int32
	p  float64
}

// NewGenerator allocates what generating takes; Close frees it.
func NewGenerator(m *Decoder, p precision.Policy, dev device.Device) (*Generator, error) {
	c := m.Config
	f := Measure(c, p, 1, c.Context, false)
	g := &Generator{model: m, policy: p}
	logits := c.Vocab*p.Master.Size() + tensor.Align
	for _, need := range []struct {
		name string
		size int
	}{{"activations", f.Keep + logits}, {"scratch", f.Temp}, {"batch", f.Batch}} {
		a, err := tensor.NewArena(need.name, need.size)
		if err != nil {
			g.Close()
			return nil, err
		}
		g.arenas = append(g.arenas, a)
	}
	g.tape = autograd.NewTape(dev, p.Types(), g.arenas[0], g.arenas[1])
	g.batch = g.arenas[2]
	return g, nil
}

// Close frees the generator's memory; the model is the caller's.
func (g *Generator) Close() {
	for _, a := range g.arenas {
		a.Close()
	}
	g.arenas = nil
}

// Logits returns the logits [1, V], in the policy's master format, of the token that follows ids; of a longer sequence than
// the model's context it sees the end. They stay valid until the next call. At least one id is needed, all below V.
func (g *Generator) Logits(ids []int32) *tensor.Tensor {
	ids = ids[max(0, len(ids)-g.model.Config.Context):]
	n := len(ids)
	g.batch.Release(0)
	b := NewBatch(g.batch, g.policy, 1, n)
	copy(b.Tokens.I32(), ids)
	b.SetPositions(false)
	g.tape.Reset(false)
	return g.model.Logits(g.tape, b, n-1, n)
}

// Next draws the token that follows ids: a pure function of the sequence, the sampling and its seed. The sampling must be
// valid.
func (g *Generator) Next(ids []int32, s Sampling) int32 {
	logits := g.Logits(ids)
	g.probs = g.probs[:0]
	for i := range logits.Len() {
		g.probs = append(g.probs, candidate{int32(i), logits.Float64(i)})
	}
	if s.Temperature <= 0 {
		return slices.MaxFunc(g.probs, func(a, b candidate) int { return compare(b, a) }).id
	}
	u := tensor.NewRNG(s.Seed, tensor.PurposeSample, uint32(len(ids))).Float64(0)
	return draw(nucleus(g.probs, s), u)
}

// compare orders candidates by falling probability, equal ones by id.
func compare(a, b candidate) int {
	switch {
	case a.p > b.p || a.p == b.p && a.id < b.id:
		return -1
	default:
		return 1
	}
}

// nucleus turns logits into probabilities at the temperature, in falling order, cut to the top K and then to the top P.
func nucleus(c []candidate, s Sampling) []candidate {
	slices.SortFunc(c, compare)
	if s.TopK > 0 && s.TopK < len(c) {
		c = c[:s.TopK]
	}
	top, sum := c[0].p, 0.0
	for i := range c {
		c[i].p = math.Exp((c[i].p - top) / s.Temperature)
		sum += c[i].p
	}
	for i := range c {
		c[i].p /= sum
	}
	if s.TopP <= 0 || s.TopP >= 1 {
		return c
	}
	sum = 0
	for i := range c {
		if sum += c[i].p; sum >= s.TopP {
			return c[:i+1]
		}
	}
	return c
}

// draw picks the candidate at u ∈ [0, 1) of the total probability.
func draw(c []candidate, u float64) int32 {
	sum := 0.0
	for _, x := range c {
		sum += x.p
	}
	u *= sum
	for _, x := range c {
		if u -= x.p; u < 0 {
			return x.id
		}
	}
	return c[len(c)-1].id
}
