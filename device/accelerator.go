package device

import "anneal/tensor"

// An Accelerator is a device beside the host's processor, and says what a run should know of it.
type Accelerator interface {
	Device
	// Kernels says which kernels compute, for people and to tell whether results have the same bits: "cuda sm_90".
	Kernels() string
	// Peak returns the GFLOP/s of dense matrix products that it can reach at most with operands of a format, 0 if that is not known.
	Peak(operand tensor.DType) float64
	// FreeMemory returns how many bytes of its memory nobody has reserved, 0 if that is not known.
	FreeMemory() int64
}
