package model

import (
	"anneal/device"
	"anneal/nn"
)

// Config is the shape of a decoder.
type Config struct {
	Family          string // llama (also ""), gpt2 or anneal
	Layers, Dim     int    // L, D
	Heads           int    // H, query heads
	KVHeads         int    // K, key-value heads; divides H
	HeadDim         int    // E
	FFN             int    // F
	Context         int    // T, the longest sequence
	Vocab           int    // V
	TieEmbeddings   bool
	QKNorm          bool    // RMSNorm on each query and key head before RoPE
	Attention       string  // patterns of the layers, as attention.ParseList reads them; "" is full
	Positions       string  // see ParsePositions
	RopeTheta       float64 // base of the rotary wavelengths
	RopeScaling     nn.RoPEScaling
	RopeInterleaved bool    // rotary pairs are neighbours instead of halves of a head
	NormEps         float64 // added to the mean square inside RMSNorm, and to the variance inside LayerNorm
	LogitSoftcap    float64 // logits z become c·tanh(z/c); 0 leaves them (Gemma 2, arXiv 2408.00118: c = 30)
	InitStd         float64 // of the normal distribution that the tables, and with gpt2 the matrices, start from
	Init            string  // how matrices start: gpt2 (also ""), he, xavier or small
	ZeroInit        string  // what starts at zero: residual, head or both; none and "" are nothing
	MuP             MuP     // the base model, if the parametrisation follows the width
	Activation      string  // of the feed-forward layer: swiglu (also ""), gelu or relu2; llama has the first, gpt2 the second

	// Of the family anneal; see anneal.go.
	ValueEmbeddings string // which layers have a table of values: alternate or all; none and "" are none
	X0Skip          bool   // every layer mixes the stream with what it was before the first

	Dropout         float64 // probability that training drops an element of the embedding or of a branch's output
	StochasticDepth float64 // probability that training drops a branch of the last layer; see depth.go

	Recompute  Layout `json:"-"` // what backward runs again; changes no result
	LogitBytes int    `json:"-"` // see autograd.Tape
}

// heads describes the columns of the fused q, k, v projection.
func (c Config) heads() device.Heads {
	return device.Heads{Q: c.Heads, KV: c.KVHeads, Size: c.HeadDim, Scale: c.scoreScale(), Interleaved: c.RopeInterleaved}
}

// biased reports whether norms and linear layers have biases.
func (c Config) biased() bool { return c.Family == "gpt2" }

// gated reports whether the feed-forward layer has a gate beside its up projection, and so three matrices.
func (c Config) gated() bool { return c.Activation == "" || c.Activation == "swiglu" }

// hasValues reports whether layer i has a table of value embeddings: all of them, or every second, the last among them.
func (c Config) hasValues(i int) bool {
	return c.ValueEmbeddings == "all" || c.ValueEmbeddings == "alternate" && (c.Layers-1-i)%2 == 0
}
