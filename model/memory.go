package model

import (
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// Memory describes where and how a model's tensors are stored.
type Memory struct {
	Device device.Memory  // the device that reserved the arenas; nil for host memory
	Params *tensor.Arena  // weights and position tables
	Grads  *tensor.Arena  // gradients; nil for a model that is not trained
	DType  tensor.DType   // F32, or F64 in the reference mode
	Weight tensor.DType   // of matrices and tables, if different; the zero value means DType
	FP8    *precision.FP8 // of the hidden matrices; nil for none
}

// MemoryOf returns the Memory of a model under a policy, with arenas that m reserved.
func MemoryOf(m device.Memory, p precision.Policy, params, grads *tensor.Arena) Memory {
	return Memory{Device: m, Params: params, Grads: grads, DType: p.Master, Weight: p.Weight, FP8: p.FP8}
}

// WeightOf returns the dtype of weights with a role: gains, biases and scalars are few, and never narrow.
func (m Memory) WeightOf(r nn.Role) tensor.DType {
	if m.Weight == tensor.Invalid || r == nn.Norm || r == nn.Bias || r == nn.Scalar {
		return m.DType
	}
	return m.Weight
}

// Allocate takes memory for this rank's part of the model: parameters, gradients, rotary tables and FP8 scales.
func (m *Decoder) Allocate(mem Memory) {
	m.AllocateTables(mem)
	for _, p := range m.params {
		p.Allocate(mem.Params, mem.WeightOf(p.Role), mem.Grads, mem.DType)
	}
}

// AllocateTables takes memory only for rotary tables and FP8 scales, which are not trained. The caller provides the
// memory of parameters and gradients.
func (m *Decoder) AllocateTables(mem Memory) {
	if mem.Device == nil {
		mem.Device = device.Host{}
	}
	m.memory = mem.Device
	c := m.Config
	for _, r := range m.ropes {
		r.RoPE = nn.NewRoPE(mem.Device, mem.Params, mem.DType, c.Context, c.HeadDim, c.RotatedDim(), r.theta,
			r.scaling, r.original)
	}
	for _, p := range m.params {
		if p.FP8Products && mem.FP8 != nil {
			p.FP8 = mem.FP8.New(mem.Params)
		}
	}
}
