package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Probe returns the logits [V] of the token that follows ids, in one forward pass with memory for that pass alone. ids
// has at least one token and at most the context. Unless before is nil, Probe calls it before Embed, every unit and
// Finish, with their numbers in UnitParams: the weights of a unit may be loaded in that call. If the head is tied, the
// weights of Embed must stay in memory.
func (m *Decoder) Probe(p precision.Policy, dev device.Device, ids []int32,
	before func(unit int) error) ([]float64, error) {
	if before == nil {
		before = func(int) error { return nil }
	}
	keep, temp, batch := tensor.NewMeasure("activations"), tensor.NewMeasure("scratch"), tensor.NewMeasure("batch")
	outline := Outline(m.Config, p)
	b := NewBatch(batch, p, 1, len(ids))
	if _, err := outline.probe(autograd.NewTape(device.Null{}, p.Types(), keep, temp), b,
		func(int) error { return nil }); err != nil {
		return nil, err
	}
	var arenas []*tensor.Arena
	for _, a := range []*tensor.Arena{keep, temp, batch} {
		made, err := dev.NewArena(a.Name(), a.Peak())
		if err != nil {
			return nil, err
		}
		defer made.Close()
		arenas = append(arenas, made)
	}
	b = NewBatch(arenas[2], p, 1, len(ids))
	copy(b.Host.Tokens, ids)
	b.SetPositions(false)
	b.Send(dev)
	z, err := m.probe(autograd.NewTape(dev, p.Types(), arenas[0], arenas[1]), b, before)
	if err != nil {
		return nil, err
	}
	z = device.OnHost(dev, z)
	logits := make([]float64, z.Len())
	for i := range logits {
		logits[i] = z.Float64(i)
	}
	return logits, nil
}

// probe returns the logits [1, V] after the last token of b.
func (m *Decoder) probe(t *autograd.Tape, b *Batch, before func(unit int) error) (*tensor.Tensor, error) {
	t.Reset(false)
	if err := before(0); err != nil {
		return nil, err
	}
	x := m.Embed(t, &b.Tokens, &b.Seq) // [T, D]
	for i := range m.Units() {
		if err := before(1 + i); err != nil {
			return nil, err
		}
		x = m.Unit(t, i, x, &b.Seq) // [T, D]
	}
	if err := before(1 + m.Units()); err != nil {
		return nil, err
	}
	h := m.Finish(t, x) // [T, D]
	return t.Logits(h, &m.head.Param, b.T-1, b.T, m.Config.LogitSoftcap), nil
}
