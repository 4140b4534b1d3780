package interop

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"anneal/config"
	"anneal/gguf"
	"anneal/hf"
	"anneal/model"
	"anneal/nn"
	"anneal/tokenizer"
)

// GGUF is a model in the form that llama.cpp reads.
type GGUF struct {
	Metadata []gguf.KV
	Tensors  []gguf.Tensor
	Sources  []GGUFSource // of the tensors, in the same order
	Notes    []string     // notes for the user of the file
}

// GGUFText is what a file for llama.cpp says about texts, beside its name for display.
type GGUFText struct {
	Name         string
	Tokenizer    *tokenizer.Tokenizer
	Special      hf.Tokens // as from [Tokens] or [ImportedTokens]
	ChatTemplate any       // as from [hf.ChatTemplate]; nil for none
}

// ToGGUF converts a model to one of llama.cpp's architectures. All weights have the type t, except vectors, tables of
// positions and routers, which llama.cpp keeps in F32. If llama.cpp does not support the model, the error names the
// key; at returns the place of a key.
func ToGGUF(m *model.Decoder, text GGUFText, t gguf.Type, at string) (*GGUF, error) {
	described, err := ToHF(m.Config, text.Special, at)
	if err != nil {
		return nil, err
	}
	a, err := architectureOf(described, m.Config, at)
	if err != nil {
		return nil, err
	}
	vocab, notes, err := ggufTokenizer(text, m.Config.Vocab)
	if err != nil {
		return nil, err
	}
	fileType, err := fileTypeOf(t)
	if err != nil {
		return nil, err
	}
	g := &GGUF{Notes: notes, Metadata: []gguf.KV{
		{Key: "general.architecture", Value: a.name}, {Key: "general.type", Value: "model"},
		{Key: "general.name", Value: text.Name}, {Key: "general.file_type", Value: fileType},
	}}
	if t == gguf.Q8_0 {
		g.Metadata = append(g.Metadata, gguf.KV{Key: "general.quantization_version", Value: uint32(2)})
	}
	for _, kv := range a.settings {
		g.Metadata = append(g.Metadata, gguf.KV{Key: a.name + "." + kv.Key, Value: kv.Value})
	}
	g.Metadata = append(g.Metadata, vocab...)
	return g, g.addTensors(m, a, t)
}

// fileTypeOf returns the number that general.file_type has for files of a type.
func fileTypeOf(t gguf.Type) (uint32, error) {
	for _, known := range gguf.Types {
		if known.Type == t {
			return known.FileType, nil
		}
	}
	return 0, fmt.Errorf("weights cannot be written as %v\n  try f32, f16, bf16 or q8_0", t)
}

// architecture describes a model in terms of one of llama.cpp's architectures.
type architecture struct {
	name        string
	settings    []gguf.KV         // keys without the architecture's name before them
	names       map[string]string // names of a layer's tensors where they differ from ggufNames
	neighbours  bool              // rotary pairs are neighbouring rows
	ropeFactors []float64         // by which factor each pair turns slower; nil for none
	scores      float64           // factor of the queries, because llama.cpp has no field for it
	headCopy    bool              // llama.cpp needs the head even if it is the embedding
}

func (a *architecture) set(key string, value any) {
	a.settings = append(a.settings, gguf.KV{Key: key, Value: value})
}

func (a *architecture) setInt(key string, value int)       { a.set(key, uint32(value)) }
func (a *architecture) setFloat(key string, value float64) { a.set(key, float32(value)) }

// architectureOf finds the architecture of a model, given its Hugging Face config.
func architectureOf(described hf.Config, m model.Config, at string) (*architecture, error) {
	a := &architecture{scores: 1}
	switch c := described.(type) {
	case *hf.GPT2Config:
		a.name = "gpt2"
		a.setInt("context_length", c.MaxPositions)
		a.setInt("embedding_length", c.HiddenSize)
		a.setInt("block_count", c.Layers)
		a.setInt("feed_forward_length", c.FFNSize)
		a.setInt("attention.head_count", c.Heads)
		a.setFloat("attention.layer_norm_epsilon", c.NormEps)
		return a, nil
	case *hf.LlamaConfig:
		return a, a.llama(c, m, at)
	case *hf.MixtralConfig:
		a.setInt("expert_count", c.Experts)
		a.setInt("expert_used_count", c.ExpertsPerToken)
		return a, a.llama(&c.LlamaConfig, m, at)
	case *hf.Qwen3MoEConfig:
		a.name = "qwen3moe"
		if !c.Normalise {
			return nil, unknownToLlama("normalise_experts", "false", "true", at)
		}
		a.setInt("expert_count", c.Experts)
		a.setInt("expert_used_count", c.ExpertsPerToken)
		a.setInt("expert_feed_forward_length", c.ExpertFFN)
		return a, a.descendant(&c.LlamaConfig, m, at)
	case *hf.Olmo2Config:
		a.name, a.headCopy, a.names = "olmo2", true, ggufSandwich
		if c.Heads*c.HeadDim != c.HiddenSize {
			return nil, unknownToLlama("head_dim", strconv.Itoa(c.HeadDim), strconv.Itoa(c.HiddenSize/c.Heads), at)
		}
		return a, a.descendant(&c.LlamaConfig, m, at)
	case *hf.Gemma2Config:
		return a, a.gemma2(c, m, at)
	case *hf.Gemma3Config:
		return a, a.gemma3(c, m, at)
	}
	return nil, config.Problem{
		Key: "model.family", At: at, Try: "--to hf, and llama.cpp's convert_hf_to_gguf.py",
		Message: fmt.Sprintf("model.family = %s is not exported to llama.cpp's format", m.Family),
	}
}

// llama chooses between the architectures of Llamas: qwen3 has QK-norm, qwen2 has biases, and llama has rotary pairs
// of neighbours.
func (a *architecture) llama(c *hf.LlamaConfig, m model.Config, at string) error {
	switch {
	case c.QKNorm:
		a.name = "qwen3"
	case c.QKVBias && c.Heads*c.HeadDim == c.HiddenSize:
		a.name = "qwen2"
	default: // it takes biases, too
		a.name, a.neighbours = "llama", true
	}
	if c.Window != 0 && c.Window < c.MaxPositions {
		return unknownToLlama("attention", m.Attention.String(), "full", at)
	}
	return a.descendant(c, m, at)
}

// gemma2 always caps scores and logits, and its head is the embedding.
func (a *architecture) gemma2(c *hf.Gemma2Config, m model.Config, at string) error {
	a.name, a.names = "gemma2", ggufSandwich
	switch {
	case c.ScoreSoftcap == 0:
		return unknownToLlama("attention_softcap", "0", "50", at)
	case c.LogitSoftcap == 0:
		return unknownToLlama("logit_softcap", "0", "30", at)
	case !c.Tied:
		return unknownToLlama("tie_embeddings", "false", "true", at)
	}
	a.setFloat("attn_logit_softcapping", c.ScoreSoftcap)
	a.setFloat("final_logit_softcapping", c.LogitSoftcap)
	window := c.Window
	if window == 0 {
		window = c.MaxPositions // of no layer
	}
	a.setInt("attention.sliding_window", window)
	if c.Window != 0 && c.Window < c.MaxPositions {
		if err := usualWindows(&c.LlamaConfig, m, 2, at); err != nil {
			return err
		}
	}
	a.scale(&c.LlamaConfig, c.ScoreDim, 46)
	return a.descendant(&c.LlamaConfig, m, at)
}

// gemma3 has a separate base of RoPE for windows, which is not scaled.
func (a *architecture) gemma3(c *hf.Gemma3Config, m model.Config, at string) error {
	a.name, a.names = "gemma3", ggufSandwich
	if c.LogitSoftcap != 0 {
		a.setFloat("final_logit_softcapping", c.LogitSoftcap)
	}
	if c.Window != 0 {
		if c.RopeScaling.Type == "yarn" { // llama.cpp scales the layers with windows as well
			return unknownToLlama("rope_scaling", m.RopeScaling.String(), "none", at)
		}
		if err := usualWindows(&c.LlamaConfig, m, 6, at); err != nil {
			return err
		}
		a.setInt("attention.sliding_window", c.Window)
		a.setFloat("rope.freq_base_swa", c.LocalTheta)
	}
	a.scale(&c.LlamaConfig, c.ScoreDim, 62)
	return a.descendant(&c.LlamaConfig, m, at)
}

// usualWindows refuses a model unless all layers except every period-th have windows, because llama.cpp assumes this
// for Gemmas and reads no pattern from their files.
func usualWindows(c *hf.LlamaConfig, m model.Config, period int, at string) error {
	for i := range c.Layers {
		if windowed := c.WindowLayers == nil || c.WindowLayers[i]; windowed != (i%period != period-1) {
			usual := fmt.Sprintf("window:%d", c.Window)
			if c.Layers >= period {
				usual = strings.Repeat(usual+",", period-1) + "full"
			}
			return unknownToLlama("attention", m.Attention.String(), usual, at)
		}
	}
	return nil
}

// scale makes queries compensate for the scale of scores, which llama.cpp derives from the number of layers: scores of
// the largest Gemma are divided by the square root of the width per head, those of others by the square root of the
// head size.
func (a *architecture) scale(c *hf.LlamaConfig, scoreDim, largest int) {
	theirs := c.HeadDim
	if c.Layers == largest {
		theirs = c.HiddenSize / c.Heads
	}
	a.scores = math.Sqrt(float64(theirs) / float64(scoreDim))
}

// descendant adds the settings that all descendants of Llama share.
func (a *architecture) descendant(c *hf.LlamaConfig, m model.Config, at string) error {
	a.setInt("vocab_size", c.VocabSize)
	a.setInt("context_length", c.MaxPositions)
	a.setInt("embedding_length", c.HiddenSize)
	a.setInt("block_count", c.Layers)
	a.setInt("feed_forward_length", c.FFNSize)
	a.setInt("attention.head_count", c.Heads)
	a.setInt("attention.head_count_kv", c.KVHeads)
	a.setInt("attention.key_length", c.HeadDim)
	a.setInt("attention.value_length", c.HeadDim)
	a.setFloat("attention.layer_norm_rms_epsilon", c.NormEps)
	a.setInt("rope.dimension_count", c.HeadDim)
	a.setFloat("rope.freq_base", c.RopeTheta)
	return a.rope(c, m, at)
}

// rope adds the scaling of rotary positions. Factors for each pair are stored as a tensor, which only the architecture
// llama reads.
func (a *architecture) rope(c *hf.LlamaConfig, m model.Config, at string) error {
	s := c.RopeScaling
	switch s.Type {
	case "", "dynamic": // a model that is not stretched yet
		return nil
	case "linear":
		a.set("rope.scaling.type", "linear")
		a.setFloat("rope.scaling.factor", s.Factor)
		return nil
	case "yarn":
		if s.BetaFast != 32 || s.BetaSlow != 1 { // which llama.cpp does not read from a file
			break
		}
		a.set("rope.scaling.type", "yarn")
		a.setFloat("rope.scaling.factor", s.Factor)
		a.setInt("rope.scaling.original_context_length", s.OriginalPositions)
		a.setFloat("rope.scaling.attn_factor", s.AttentionFactor/(1+0.1*math.Log(s.Factor))) // of the usual one
		return nil
	}
	if a.name != "llama" {
		return unknownToLlama("rope_scaling", m.RopeScaling.String(), "none, or yarn without fast and slow", at)
	}
	lengths := nn.Lengths{Original: m.RopeOriginalContext, Positions: m.Context}
	scaled := m.RopeScaling.Frequencies(m.HeadDim, m.RopeTheta, lengths)
	for i, f := range (nn.RoPEScaling{}).Frequencies(m.HeadDim, m.RopeTheta, lengths) {
		a.ropeFactors = append(a.ropeFactors, f/scaled[i])
	}
	if s.AttentionFactor != 0 { // of longrope and yarn
		a.setFloat("rope.scaling.attn_factor", s.AttentionFactor)
	}
	return nil
}

func unknownToLlama(key, value, without, at string) error {
	return config.Problem{
		Key: "model." + key, At: at,
		Try: fmt.Sprintf("a model that is trained with model.%s = %s, or --to hf", key, without),
		Message: fmt.Sprintf("model.%s = %s is unknown to llama.cpp in this architecture: it would compute something "+
			"else", key, value),
	}
}
