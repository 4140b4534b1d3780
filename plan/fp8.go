package plan

// quantisedBlock is the scratch memory of a block in precision fp8, in bytes: activations and gradients of the block up to
// the largest of its four layers, in BF16, and what that layer's backward holds quantised at a time, also in BF16: its
// gradient [n, O], and its input [n, I] or its weight [O, I].
func (s Shape) quantisedBlock(n int64) int64 {
	d, f, width := s.dim(), int64(s.FFN), int64(s.Heads)*int64(s.HeadDim)
	layer := func(in, out int64) int64 { return n*out + in*max(n, out) }
	return 2 * max(
		n*2*f+layer(f, d),                           // down
		n*(4*f+2*d)+layer(d, 2*f),                   // gate and up
		n*(4*f+2*d+width)+layer(width, d),           // attention's output
		n*(4*f+4*d+width+s.qkv())+layer(d, s.qkv()), // queries, keys and values
	)
}
