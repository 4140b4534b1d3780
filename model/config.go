package model

import (
	"anneal/device"
	"anneal/nn"
)

// Config is the shape of a decoder.
type Config struct {
	Family          string // llama (default), gpt2 or anneal
	Layers, Dim     int    // L, D
	Heads           int    // H, query heads
	KVHeads         int    // K, key-value heads; divides H
	HeadDim         int    // E
	FFN             int    // F
	Context         int    // T, the longest sequence
	Vocab           int    // V
	TieEmbeddings   bool
	QKNorm          bool    // RMSNorm on each query and key head before RoPE
	Attention       string  // patterns of the layers, see attention.ParseList; "" is full
	Positions       string  // see ParsePositions
	RopeTheta       float64 // base of the rotary frequencies
	RopeScaling     nn.RoPEScaling
	RopeInterleaved bool    // rotary pairs are neighbours instead of the two halves of a head
	NormEps         float64 // added to the mean square inside RMSNorm, and to the variance inside LayerNorm
	LogitSoftcap    float64 // logits z become c·tanh(z/c); 0 disables it (Gemma 2, arXiv 2408.00118: c = 30)
	InitStd         float64 // standard deviation of the initial tables, and of matrices with gpt2
	Init            string  // initialisation of matrices: gpt2 (default), he, xavier or small
	ZeroInit        string  // parameters that start at zero: residual, head or both; "" and none are none
	MuP             MuP     // base model for muP; zero without muP
	Activation      string  // activation of the feed-forward layer: swiglu (default), gelu or relu2; llama has the first, gpt2 the second

	// Of the family anneal; see anneal.go.
	ValueEmbeddings string // layers with a table of values: alternate or all; "" and none are none
	X0Skip          bool   // every layer mixes the stream with its value before the first layer

	Dropout         float64 // probability that training drops an element of the embedding or of a branch's output
	StochasticDepth float64 // probability that training drops a branch of the last layer; see depth.go

	Recompute  Layout `json:"-"` // which layers backward recomputes; does not change results
	LogitBytes int    `json:"-"` // see autograd.Tape
}

// heads describes the columns of the fused q, k, v projection.
func (c Config) heads() device.Heads {
	return device.Heads{Q: c.Heads, KV: c.KVHeads, Size: c.HeadDim, Scale: c.scoreScale(), Interleaved: c.RopeInterleaved}
}

// biased reports whether norms and linear layers have biases.
func (c Config) biased() bool { return c.Family == "gpt2" }

// gated reports whether the feed-forward layer has a gate beside its up projection, that is, three matrices.
func (c Config) gated() bool { return c.Activation == "" || c.Activation == "swiglu" }

// hasValues reports whether layer i has a table of value embeddings: all layers, or every second one including the
// last.
func (c Config) hasValues(i int) bool {
	return c.ValueEmbeddings == "all" || c.ValueEmbeddings == "alternate" && (c.Layers-1-i)%2 == 0
}
