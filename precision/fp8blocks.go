package precision

import "anneal/autograd"

// The blocks of FP8 operands; each block has its own scale. In a tensor with few outliers, FP8's short range then
// affects only the blocks that hold them, so both recipes can use E4M3 for gradients, too:
//
//	block  activations and gradients 1×128, weights 128×128 (DeepSeek-V3, Liu et al. 2024, arXiv 2412.19437)
//	mx     32 numbers (MXFP8: OCP Microscaling Formats 1.0; Mishra et al. 2025, arXiv 2506.08027)
//
// The scale is 2^⌈log₂(amax/448)⌉ for both, one byte (E8M0): nothing is clipped. It is the rule of Transformer Engine's
// recipes Float8BlockScaling and MXFP8BlockScaling, and what DeepSeek uses since V3.1; V3 itself had FP32 scales. On
// hardware, scales take 1/128 and 1/32 byte per number; here nothing is kept between products. Embeddings, head, norms
// and attention are those of policy bf16, as with one scale per tensor. FP8 is emulated: the products have BF16
// operands, on CUDA devices as well.
var blocks = map[string]autograd.Blocks{"block": {Long: 128, Wide: 128}, "mx": {Long: 32, Wide: 1}}

// BlocksOf returns the blocks for a value of fp8.scaling; zero for values with one scale per tensor.
func BlocksOf(scaling string) autograd.Blocks { return blocks[scaling] }

// Current reports whether scales are computed from the whole current tensor.
func (r *FP8) Current() bool { return !r.Delayed && r.Blocks.Long == 0 }
