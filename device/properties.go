package device

import "anneal/tensor"

// Properties describe a device. They are read when a run is planned, opened and reported, never in a loop over
// kernels.
type Properties interface {
	// Name describes the device, such as "cpu avx512, 2 threads".
	Name() string
	// Kernels identifies the kernels, such as "avx512" or "cuda sm_90". Results of different kernels may differ in
	// their bits.
	Kernels() string
	// Threads returns the number of host threads that compute, 0 if the host does not.
	Threads() int
	// Apart reports whether the device's own memory is apart from the host's (Memory.NewArena).
	Apart() bool
	// FreeMemory returns the bytes available for arenas, 0 if unknown.
	FreeMemory() int64
	// Peak returns the peak GFLOP/s of dense matrix products with operands of the given format, 0 if unknown. A
	// device that has to measure it takes a tenth of a second.
	Peak(operand tensor.DType) float64
	// LogitBytes returns how much memory is best used for logits that exist at one time; 0 means autograd's default.
	LogitBytes() int
	// Blocked returns the best blocked format for copies of F32 weights in products of few rows, with operands of the
	// given format. The results equal those of the weights themselves, bit for bit. Invalid means none.
	Blocked(operand tensor.DType) tensor.DType
	// ProductScratch returns the bytes outside the arenas that matrix products use with operands of the given format.
	ProductScratch(operand tensor.DType) int
	// AttentionScratch returns the bytes outside the arenas that Attention and AttentionGrad of N tokens use with qkv
	// in the given storage.
	AttentionScratch(storage tensor.DType, tokens int, heads Heads, mask Mask) int
	// LinearAttentionScratch is AttentionScratch for LinearAttention and LinearAttentionGrad, for rows of length
	// tokens.
	LinearAttentionScratch(storage tensor.DType, tokens, length int, heads Heads, gated bool) int
	// ScratchBytes returns the bytes that the kernels have allocated outside the arenas so far.
	ScratchBytes() int
}

// Unknown implements Properties for a device that knows nothing about itself. Devices embed it and override the
// methods that they know.
type Unknown struct{}

var _ Properties = Unknown{}

// Each method returns the value for "unknown".
func (Unknown) Name() string                                                   { return "unknown" }
func (Unknown) Kernels() string                                                { return "unknown" }
func (Unknown) Threads() int                                                   { return 0 }
func (Unknown) Apart() bool                                                    { return false }
func (Unknown) FreeMemory() int64                                              { return 0 }
func (Unknown) Peak(tensor.DType) float64                                      { return 0 }
func (Unknown) LogitBytes() int                                                { return 0 }
func (Unknown) Blocked(tensor.DType) tensor.DType                              { return tensor.Invalid }
func (Unknown) ProductScratch(tensor.DType) int                                { return 0 }
func (Unknown) AttentionScratch(tensor.DType, int, Heads, Mask) int            { return 0 }
func (Unknown) LinearAttentionScratch(tensor.DType, int, int, Heads, bool) int { return 0 }
func (Unknown) ScratchBytes() int                                              { return 0 }
