package model

import (
	"anneal/device"
	"anneal/nn"
)

// Config is the shape of a decoder.
type Config struct {
	Family          string // llama (also "")
	Layers, Dim     int    // L, D
	Heads           int    // H, query heads
	KVHeads         int    // K, key-value heads; divides H
	HeadDim         int    // E
	FFN             int    // F
	Context         int    // T, the longest sequence
	Vocab           int    // V
	TieEmbeddings   bool
	QKNorm          bool    // RMSNorm on each query and key head before RoPE
	Positions       string  // see ParsePositions
	RopeTheta       float64 // base of the rotary wavelengths
	RopeScaling     nn.RoPEScaling
	RopeInterleaved bool    // rotary pairs are neighbours instead of halves of a head
	NormEps         float64 // added to the mean square inside RMSNorm
	LogitSoftcap    float64 // logits z become c·tanh(z/c); 0 leaves them (Gemma 2, arXiv 2408.00118: c = 30)
	InitStd         float64 // of the normal distribution that the tables, and with gpt2 the matrices, start from
	Init            string  // how matrices start: gpt2 (also ""), he, xavier or small
	ZeroInit        string  // what starts at zero: residual, head or both; none and "" are nothing
	MuP             MuP     // the base model, if the parametrisation follows the width

	Dropout         float64 // probability that training drops an element of the embedding or of a branch's output
	StochasticDepth float64 // probability that training drops a branch of the last layer; see depth.go

	Recompute Layout `json:"-"` // what backward runs again; changes no result
}

// heads describes the columns of the fused q, k, v projection.
func (c Config) heads() device.Heads {
	return device.Heads{Q: c.Heads, KV: c.KVHeads, Size: c.HeadDim, Scale: c.scoreScale(), Interleaved: c.RopeInterleaved}
}
