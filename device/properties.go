package device

import "anneal/tensor"

// Properties are what a device says about itself. They are asked when a run is planned, opened and reported, never
// in a loop over kernels.
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
	// LogitBytes returns the memory that it pays to spend on logits that exist at one time; 0 is autograd's default.
	LogitBytes() int
	// Blocked returns the blocked format in which copies of weights in F32 are best kept for products of few rows, with
	// operands of the given format: the results are those of the weights themselves, bit for bit. Invalid means none.
	Blocked(operand tensor.DType) tensor.DType
	// ProductScratch returns the bytes beside the arenas that matrix products take with operands of the given
	// format.
	ProductScratch(operand tensor.DType) int
	// AttentionScratch returns the bytes beside the arenas that Attention and AttentionGrad of N tokens take with
	// qkv in the given storage.
	AttentionScratch(storage tensor.DType, tokens int, heads Heads, mask Mask) int
	// LinearAttentionScratch is AttentionScratch of LinearAttention and LinearAttentionGrad, for rows of length
	// tokens.
	LinearAttentionScratch(storage tensor.DType, tokens, length int, heads Heads, gated bool) int
	// ScratchBytes returns the bytes that the kernels have taken beside the arenas so far.
	ScratchBytes() int
}

// Unknown are the properties of a device that says nothing about itself. Devices embed it and say what they know.
type Unknown struct{}

var _ Properties = Unknown{}

// Each method returns that it does not know.
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
