package model

import (
	"math"

	sparse "anneal/attention"
	"anneal/device"
	"anneal/nn"
)

// Config is the shape of a decoder: the section model of a run's configuration, with every field's key in its yaml
// tag. Weights work only with the shape that they were trained with; Differences compares two shapes key by key. The
// few keys that weights do not depend on have the tag weights:"any".
type Config struct {
	Family  string `yaml:"family" zero:"llama"`   // llama, gpt2, anneal, olmo2, phi3, gemma2, gemma3 or qwen3_moe
	Layers  int    `yaml:"layers"`                // L
	Dim     int    `yaml:"dim"`                   // D
	Heads   int    `yaml:"heads"`                 // H, query heads
	KVHeads int    `yaml:"kv_heads"`              // K, key-value heads; divides H
	HeadDim int    `yaml:"head_dim"`              // E
	FFN     int    `yaml:"ffn"`                   // F
	Context int    `yaml:"context" weights:"any"` // T, the longest sequence
	Vocab   int    `yaml:"vocab"`                 // V

	TieEmbeddings bool `yaml:"tie_embeddings"`
	QKNorm        bool `yaml:"qk_norm"`  // RMSNorm on each query and key head before RoPE
	QKVBias       bool `yaml:"qkv_bias"` // biases of queries, keys and values, where the family has no others

	KVLoraRank int `yaml:"kv_lora_rank"` // R of the latent of keys and values; 0 for none (latent.go)

	Attention sparse.Patterns `yaml:"attention"` // the keys that the queries of each layer see
	// layers of longformer have projections of their own for global tokens (global.go)
	LongformerGlobalProjections bool `yaml:"longformer_global_projections"`

	// taps of the convolutions before linear attention; 0 for none (shortconv.go)
	ShortConv int `yaml:"short_conv"`

	Positions Positions `yaml:"positions"`
	RopeTheta float64   `yaml:"rope_theta"` // base of the rotary frequencies
	// the same in layers with a window; 0 for RopeTheta
	RopeThetaLocal float64        `yaml:"rope_theta_local"`
	RopeScaling    nn.RoPEScaling `yaml:"rope_scaling"`
	// context of the first training, which RopeScaling starts from
	RopeOriginalContext int    `yaml:"rope_original_context"`
	RopeLayout          string `yaml:"rope_layout" zero:"half"` // half or interleaved; see Interleaved
	// elements of a head that are rotated, the last ones, with KVLoraRank
	RopeHeadDim int `yaml:"rope_head_dim"`

	NormEps        float64 `yaml:"norm_eps"`        // added to the mean square in RMSNorm, to the variance in LayerNorm
	AttentionSinks bool    `yaml:"attention_sinks"` // a learned logit for each head in the softmax's denominator

	ScoreDim int `yaml:"score_dim"` // scores of attention are divided by its square root; 0 for HeadDim
	// scores s of attention become c·tanh(s/c); 0 disables it (Gemma 2)
	AttentionSoftcap float64 `yaml:"attention_softcap"`
	// logits z become c·tanh(z/c); 0 disables it (Gemma 2, arXiv 2408.00118)
	LogitSoftcap float64 `yaml:"logit_softcap"`

	InitStd  float64 `yaml:"init_std" weights:"any"`              // σ of initial tables and of gpt2 matrices
	Init     string  `yaml:"init" weights:"any" zero:"gpt2"`      // of matrices: gpt2, he, xavier or small
	ZeroInit string  `yaml:"zero_init" weights:"any" zero:"none"` // what starts at zero: residual, head, both or none

	// The maximal update parametrisation; see mup.go.
	MuP            bool    `yaml:"mup"`
	MuPBaseDim     int     `yaml:"mup_base_dim" of:"MuP"`                  // D₀ of the base model
	MuPBaseHeadDim int     `yaml:"mup_base_head_dim" of:"MuP"`             // E₀
	MuPBaseFFN     int     `yaml:"mup_base_ffn" of:"MuP" weights:"any"`    // F₀
	MuPBaseLayers  int     `yaml:"mup_base_layers" of:"MuP" weights:"any"` // L₀; 0 ignores depth
	MuPInputScale  float64 `yaml:"mup_input_scale" of:"MuP"`               // α_in
	MuPOutputScale float64 `yaml:"mup_output_scale" of:"MuP"`              // α_out

	Activation string `yaml:"activation" zero:"swiglu"` // of the feed-forward layer: swiglu, geglu, gelu or relu2

	// Of the family anneal; see anneal.go.
	// layers with a table of values: alternate, all or none
	ValueEmbeddings string `yaml:"value_embeddings" zero:"none"`
	X0Skip          bool   `yaml:"x0_skip"` // layers mix the stream with its first value
	Bigram          int    `yaml:"bigram"`  // rows of the table of pairs of tokens; 0 for none (bigram.go)
	Smear           bool   `yaml:"smear"`   // embeddings get a share of those before (smear.go)

	// Of the family qwen3_moe; see qwen3moe.go.
	Experts          int     `yaml:"experts"`                       // E, per layer
	ExpertsPerToken  int     `yaml:"experts_per_token"`             // K
	ExpertFFN        int     `yaml:"expert_ffn"`                    // F of each expert
	SharedExpertFFN  int     `yaml:"shared_expert_ffn"`             // S of the expert of all tokens; 0 for none
	NormaliseExperts bool    `yaml:"normalise_experts"`             // weights of a token's experts sum to 1
	RouterAuxLoss    float64 `yaml:"router_aux_loss" weights:"any"` // coefficient of the load-balancing loss
	RouterZLoss      float64 `yaml:"router_z_loss" weights:"any"`   // coefficient of the mean log²Z of the routers

	// Adapters beside frozen weights; see lora.go.
	LoRARank    int     `yaml:"lora_rank"`    // R; 0 for none
	LoRAAlpha   float64 `yaml:"lora_alpha"`   // α
	LoRATargets string  `yaml:"lora_targets"` // patterns of names of a layer's matrices; all if empty
	LoRADora    bool    `yaml:"lora_dora"`    // the norms of rows are trained apart from their directions; see dora.go

	// Dropout is the probability that training drops an element of the embedding or of a branch's output,
	// StochasticDepth the probability that it drops a branch of the last layer (depth.go).
	Dropout         float64 `yaml:"dropout" weights:"any"`
	StochasticDepth float64 `yaml:"stochastic_depth" weights:"any"`

	// How a model runs. This is not part of its shape.
	Recompute  Layout `yaml:"-" json:"-"` // which layers backward recomputes; does not change results
	LogitBytes int    `yaml:"-" json:"-"` // see autograd.Tape
}

// heads describes the columns of the fused q, k, v projection.
func (c Config) heads() device.Heads {
	h := device.Heads{Q: c.Heads, KV: c.KVHeads, Size: c.HeadDim, Scale: c.scoreScale(), Interleaved: c.Interleaved(),
		Softcap: c.AttentionSoftcap}
	if c.ScoreDim != 0 {
		h.Scale = 1 / math.Sqrt(float64(c.ScoreDim))
	}
	return h
}

// Interleaved reports whether rotary pairs are neighbours instead of the two halves of a head.
func (c Config) Interleaved() bool { return c.RopeLayout == "interleaved" || c.KVLoraRank > 0 }

// RotatedDim returns how many elements of a head RoPE turns.
func (c Config) RotatedDim() int {
	if c.KVLoraRank > 0 {
		return c.RopeHeadDim
	}
	return c.HeadDim
}

// biased reports whether norms and linear layers have biases.
func (c Config) biased() bool { return c.Family == "gpt2" }

// HasBiases reports whether the model has parameters of the role nn.Bias: all of gpt2, those of queries, keys and
// values, and those of the gates of linear attention.
func (c Config) HasBiases() bool { return c.biased() || c.QKVBias || c.gatedLinear() }

// gated reports whether the feed-forward layer has a gate beside its up projection, that is, three matrices.
func (c Config) gated() bool {
	return c.Activation == "" || c.Activation == "swiglu" || c.Activation == "geglu"
}

// hasValues reports whether layer i has a table of value embeddings: all layers, or every second one including the
// last.
func (c Config) hasValues(i int) bool {
	return c.ValueEmbeddings == "all" || c.ValueEmbeddings == "alternate" && (c.Layers-1-i)%2 == 0
}
