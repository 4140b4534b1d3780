package plan

// Shape is a Llama-style decoder: RMSNorm before each branch and at the end, rotary positions, grouped-query attention,
// SwiGLU, no biases.
type Shape struct {
	Layers  int
	Dim     int // D, width of the residual stream
	Heads   int // H, query heads
	KVHeads int // K, key and value heads
	HeadDim int // E
	FFN     int // F, hidden width of the feed-forward layer
	Context int // T, tokens in a sequence
	Vocab   int // V
	Tied    bool
	QKNorm  bool

	Recompute Recompute
	Masked    bool // branches' outputs are masked or scaled before they join the residual stream: dropout, stochastic depth
}

// Recompute is what backward computes again instead of keeping it: all of the first Whole layers but the input of each
// Segment of them, and the attention of the next Attention layers.
type Recompute struct{ Whole, Segment, Attention int }

// Parameters counts every trained number: the matrices, the norm gains, and the embedding table.
func (s Shape) Parameters() int64 {
	n := s.matrixPerLayer()*int64(s.Layers) + s.gains() + s.table()
	if !s.Tied {
		n += s.table()
	}
	return n
}

// gains counts the parameters of norms: two in a layer, those of query and key heads, and the last.
func (s Shape) gains() int64 {
	layer := 2 * s.dim()
	if s.QKNorm {
		layer += 2 * int64(s.HeadDim)
	}
	return layer*int64(s.Layers) + s.dim()
}

// MatrixParameters counts the parameters used in matrix products: the blocks' matrices and the head, which multiplies
// also where it shares the embedding table. Looking an embedding up multiplies nothing.
func (s Shape) MatrixParameters() int64 {
	return s.matrixPerLayer()*int64(s.Layers) + s.table()
}

// FLOPsPerToken counts forward and backward of one training token:
//
//	6 · (parameters used in matrix products) + 6 · layers · T · H·E
//
// Each matrix parameter costs a multiplication and an addition forward and twice that backward. The second term is
// attention's two products with the T keys, with the causal half counted (H·E is D in most models).
func (s Shape) FLOPsPerToken() float64 {
	attention := float64(s.Layers) * float64(s.Context) * float64(s.Heads) * float64(s.HeadDim)
	return 6*float64(s.MatrixParameters()) + 6*attention
}

func (s Shape) dim() int64   { return int64(s.Dim) }
func (s Shape) table() int64 { return int64(s.Vocab) * int64(s.Dim) }

// qkv is the width of the joint query, key and value projection.
func (s Shape) qkv() int64 { return (int64(s.Heads) + 2*int64(s.KVHeads)) * int64(s.HeadDim) }

// matrixPerLayer counts qkv [D, (H+2K)·E], attention out [H·E, D], gate and up [D, 2F] and down [F, D].
func (s Shape) matrixPerLayer() int64 {
	return s.dim() * (s.qkv() + int64(s.Heads)*int64(s.HeadDim) + 3*int64(s.FFN))
}
