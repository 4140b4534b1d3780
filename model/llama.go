package model

import (
	"fmt"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// Config is the shape of a Llama-style decoder (Touvron et al. 2023, arXiv 2302.13971): RMSNorm before each sub-layer,
// rotary positions, grouped-query attention (Ainslie et al. 2023), SwiGLU, no biases.
type Config struct {
	Layers, Dim   int // L, D
	Heads         int // H, query heads
	KVHeads       int // K, key-value heads; divides H
	HeadDim       int // E
	FFN           int // F
	Context       int // T, the longest sequence
	Vocab         int // V
	TieEmbeddings bool
	QKNorm        bool    // RMSNorm on each query and key head before RoPE
	RopeTheta     float64 // base of the rotary wavelengths
	NormEps       float64 // added to the mean square inside RMSNorm
	LogitSoftcap  float64 // logits z become c·tanh(z/c); 0 leaves them (Gemma 2, arXiv 2408.00118: c = 30)
	InitStd       float64 // of the normal distribution that the tables, and with gpt2 the matrices, start from
	Init          string  // how matrices start: gpt2 (also ""), he, xavier or small
	ZeroInit      string  // what starts at zero: residual, head or both; none and "" are nothing
	MuP           MuP     // the base model, if the parametrisation follows the width

	Dropout         float64 // probability that training drops an element of the embedding or of a branch's output
	StochasticDepth float64 // probability that training drops a branch of the last layer; see depth.go

	Recompute Layout `json:"-"` // what backward runs again; changes no result
}

// heads describes the columns of the fused q, k, v projection.
func (c Config) heads() device.Heads {
	return device.Heads{Q: c.Heads, KV: c.KVHeads, Size: c.HeadDim, Scale: c.scoreScale()}
}

// Llama is a decoder-only transformer.
type Llama struct {
	Config Config
	embed  *nn.Param
	units  []*unit // of blocks that backward runs again: the first ones
	blocks []*Block
	norm   *nn.Param
	head   *nn.Param // the embedding itself when tied
	params []*nn.Param

	dropEmbedding autograd.Drop
}

// Block is one layer: attention and a gated feed-forward network, each a branch on the residual stream.
type Block struct {
	norm1, wqkv, qnorm, knorm, wo *nn.Param
	norm2, wgu, wdown             *nn.Param

	heads device.Heads
	rope  nn.RoPE
	eps   float64
	again bool // backward runs the attention again

	dropAttention, dropMLP autograd.Drop
}

// params returns the block's parameters in the order of the model's list.
func (b *Block) params() []*nn.Param {
	list := []*nn.Param{b.norm1, b.wqkv, b.wo}
	if b.qnorm != nil {
		list = append(list, b.qnorm, b.knorm)
	}
	return append(list, b.norm2, b.wgu, b.wdown)
}

// Memory is where a model's tensors live.
type Memory struct {
	Params *tensor.Arena  // weights and position tables
	Grads  *tensor.Arena  // gradients; nil for a model that will not be trained
	DType  tensor.DType   // F32, or F64 in the reference mode
	Weight tensor.DType   // of matrices and tables, if they are stored otherwise; the zero value means DType
	FP8    *precision.FP8 // of the hidden matrices; nil for none
}

// MemoryOf returns where and how the tensors of a model live under a policy.
func MemoryOf(p precision.Policy, params, grads *tensor.Arena) Memory {
	return Memory{Params: params, Grads: grads, DType: p.Master, Weight: p.Weight, FP8: p.FP8}
}

// weight returns what weights of a role are stored in: gains and biases are few, and never narrow.
func (m Memory) weight(r nn.Role) tensor.DType {
	if m.Weight == tensor.Invalid || r == nn.Norm || r == nn.Bias {
		return m.DType
	}
	return m.Weight
}

// New lays out a model. Weights are zero until Init or a load fills them.
func New(c Config, mem Memory) *Llama {
	m := &Llama{Config: c}
	add := func(name string, role nn.Role, shape ...int) *nn.Param {
		p := &nn.Param{Name: name, Role: role}
		p.Value = mem.Params.New(mem.weight(role), shape...)
		if mem.Grads != nil {
			p.Grad = mem.Grads.New(mem.DType, shape...)
		}
		if role == nn.Matrix && mem.FP8 != nil {
			p.FP8 = mem.FP8.New(mem.Params)
		}
		m.params = append(m.params, p)
		return p
	}
	rope := nn.NewRoPE(mem.Params, mem.DType, c.Context, c.HeadDim, c.RopeTheta)
	qRows, kvRows := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim

	m.embed = add("embed", nn.Embedding, c.Vocab, c.Dim)
	for i := range c.Layers {
		b := &Block{heads: c.heads(), rope: rope, eps: c.NormEps}
		at := fmt.Sprintf("layers.%d.", i)
		b.norm1 = add(at+"attention_norm", nn.Norm, c.Dim)
		b.wqkv = add(at+"attention.qkv", nn.Matrix, qRows+2*kvRows, c.Dim)
		b.wqkv.Parts = []nn.Part{{Name: "q", Rows: qRows}, {Name: "k", Rows: kvRows}, {Name: "v", Rows: kvRows}}
		b.wo = add(at+"attention.out", nn.Matrix, c.Dim, qRows)
		if c.QKNorm {
			b.qnorm = add(at+"attention.q_norm", nn.Norm, c.HeadDim)
			b.knorm = add(at+"attention.k_norm", nn.Norm, c.HeadDim)
		}
		b.norm2 = add(at+"mlp_norm", nn.Norm, c.Dim)
		b.wgu = add(at+"mlp.gate_up", nn.Matrix, 2*c.FFN, c.Dim)
		b.wgu.Parts = []nn.Part{{Name: "gate", Rows: c.FFN}, {Name: "up", Rows: c.FFN}}
		b.wdown = add(at+"mlp.down", nn.Matrix, c.Dim, c.FFN)
		m.blocks = append(m.blocks, b)
	}
	m.SetRecompute(c.Recompute)
	m.drop(c.Dropout, c.StochasticDepth)
	m.norm = add("norm", nn.Norm, c.Dim)
	m.head = m.embed
	if !c.TieEmbeddings {
		m.head = add("head", nn.Head, c.Vocab, c.Dim)
	}
	m.setGrowth()
	m.setStds()
	return m
}

// Init fills every parameter with its initial values for the seed.
func (m *Llama) Init(seed uint64) {
	for i, p := range m.params {
		p.Init(seed, i)
	}
}

// Params returns the parameters in a fixed order; a tied head appears once, as the embedding.
func (m *Llama) Params() []*nn.Param { return m.params }

// Count returns the number of parameters.
func (m *Llama) Count() int64 {
	var n int64
	for _, p := range m.params {
		n += int64(p.Value.Len())
	}
	return n
}

// Forward returns the final normalised hidden states [N, D] of tokens ids [N].
func (m *Llama) Forward(t *autograd.Tape, ids *tensor.Tensor, seq *autograd.Sequence) *autograd.Var {
	x := t.Embedding(&m.embed.Param, ids) // [N, D]
	if f := m.Config.MuP.inputScale(); f != 1 {
		x = t.ScaleStream(x, f)
	}
	x = t.Dropout(x, m.dropEmbedding, seq)
	for _, u := range m.units {
		x = t.Recompute(u, x, seq) // [N, D]
	}
	for _, b := range m.blocks[m.Config.Recompute.Whole:] {
		x = t.Block(b, x, seq) // [N, D]
	}
	gain := &m.norm.Param
	if f := m.Config.logitScale(); f != 1 {
		gain = t.ScaleParam(gain, f) // logits are linear in it
	}
	return t.RMSNorm(x, gain, m.Config.NormEps) // [N, D]
}

// Loss writes each token's cross-entropy to b.Losses and, if the tape records, computes the gradients of their sum, with
// the z-loss if b has one.
func (m *Llama) Loss(t *autograd.Tape, b *Batch) {
	h := m.Forward(t, &b.Tokens, &b.Seq)
	o := device.LossOptions{Softcap: m.Config.LogitSoftcap, ZLoss: b.ZLoss, LogZ: &b.LogZ, Labels: b.Labels, FirstLabel: b.FirstLabel}
	if b.Labels != (tensor.RNG{}) {
		o.ZLoss = 0
	}
	t.HeadLoss(h, &m.head.Param, &b.Targets, &b.Losses, o) // never forms [N, V]
}

// Logits returns the logits [to−from, V] of tokens [from, to) of the batch, for sampling. They are valid until the tape's Reset.
func (m *Llama) Logits(t *autograd.Tape, b *Batch, from, to int) *tensor.Tensor {
	h := m.Forward(t, &b.Tokens, &b.Seq)
	return t.Logits(h, &m.head.Param, from, to, m.Config.LogitSoftcap)
}

// Forward adds the block's two branches to the residual stream x [N, D], those that training does not drop.
func (b *Block) Forward(t *autograd.Tape, x *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	if !t.Dropped(b.dropAttention, seq) {
		h := t.RMSNorm(x, &b.norm1.Param, b.eps)                 // [N, D]
		a := b.attend(t, h, seq)                                 // [N, H·E]
		x = t.AddBranch(x, a, &b.wo.Param, b.dropAttention, seq) // [N, D]
	}
	if !t.Dropped(b.dropMLP, seq) {
		h := t.RMSNorm(x, &b.norm2.Param, b.eps)                         // [N, D]
		gu := t.Linear(h, &b.wgu.Param)                                  // [N, 2F]
		x = t.AddBranch(x, t.SwiGLU(gu), &b.wdown.Param, b.dropMLP, seq) // [N, D]
	}
	return x
}

// attention is the part of a block between the first norm and the output projection.
type attention Block

// Forward returns what the heads read for h [N, D]: [N, H·E].
func (b *attention) Forward(t *autograd.Tape, h *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	qkv := t.Linear(h, &b.wqkv.Param) // [N, (H+2K)·E]
	if b.qnorm != nil {
		qkv = t.QKNorm(qkv, &b.qnorm.Param, &b.knorm.Param, b.heads, b.eps)
	}
	qkv = t.RoPE(qkv, &b.rope.Cos, &b.rope.Sin, b.heads, seq)
	return t.Attention(qkv, b.heads, seq) // [N, H·E]  never forms [T, T]
}

func (b *Block) attend(t *autograd.Tape, h *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	if b.again {
		return t.RecomputePart((*attention)(b), h, seq)
	}
	return (*attention)(b).Forward(t, h, seq)
}
