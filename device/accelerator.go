package device

import "anneal/tensor"

// An Accelerator is a device separate from the host's processor, with properties that runs report.
type Accelerator interface {
	Device
	// Kernels identifies the kernels, such as "cuda sm_90". Results of different kernels may differ in their bits.
	Kernels() string
	// Peak returns the peak GFLOP/s of dense matrix products with operands of the given format, 0 if unknown.
	Peak(operand tensor.DType) float64
	// FreeMemory returns the free bytes of its memory, 0 if unknown.
	FreeMemory() int64
}
