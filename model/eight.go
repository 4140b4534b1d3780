package model

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// HoldEight makes copies of the model's matrices in 8 bits (tensor.Q8), by which passes without gradients multiply from
// now on: those of evaluators, generators and batchers that are made later. The copies are those of the weights as they
// are now, and live in memory that the caller closes after the model's last pass. Embeddings, experts, matrices of FP8
// layers and those whose rows are not whole blocks stay as they are; it is an error if all do. The device must be the
// CPU.
func (m *Decoder) HoldEight(p precision.Policy, dev device.Device) (*tensor.Arena, error) {
	list := m.eightable(p)
	if len(list) == 0 {
		return nil, errors.New("no matrix of this model can be held in 8 bits")
	}
	need := tensor.NewMeasure("weights in 8 bits")
	for _, w := range list {
		need.New(tensor.Q8, w.Value.Shape()...)
	}
	a, err := dev.NewArena("weights in 8 bits", need.Peak())
	if err != nil {
		return nil, err
	}
	m.eight = autograd.Rounded{}
	copies := make([]tensor.Tensor, len(list))
	for i, w := range list {
		copies[i] = a.New(tensor.Q8, w.Value.Shape()...)
		m.eight[&w.Param] = &copies[i]
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				tensor.ToBlocks(&copies[i], &list[i].Value)
			}
		})
	}
	all.Wait()
	return a, nil
}

// eightable returns the matrices that can be held in 8 bits.
func (m *Decoder) eightable(p precision.Policy) (list []*nn.Param) {
	if p.Operand == tensor.F64 {
		return nil
	}
	for _, w := range m.params {
		matrix := (w.Role == nn.Matrix || w == m.head) && w.Value.Rank() == 2
		if matrix && w.FP8 == nil && tensor.FitsBlocks(w.Value.Cols()) {
			list = append(list, w)
		}
	}
	return list
}

// Copies returns the copies that HoldEight made, for a tape of passes without gradients; nil if there are none.
func (m *Decoder) Copies() autograd.Rounded { return m.eight }
