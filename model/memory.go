package model

import (
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// Memory describes where and how a model's tensors are stored.
type Memory struct {
	Device device.Memory  // that reserved the arenas; nil for host memory
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

// weight returns the dtype of weights with a role: gains, biases and scalars are few, and never narrow.
func (m Memory) weight(r nn.Role) tensor.DType {
	if m.Weight == tensor.Invalid || r == nn.Norm || r == nn.Bias || r == nn.Scalar {
		return m.DType
	}
	return m.Weight
}
