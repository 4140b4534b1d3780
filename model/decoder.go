package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// Decoder is a decoder-only transformer: a token embedding, the blocks of its family, a norm and a head.
type Decoder struct {
	Config    Config
	memory    device.Memory
	embed     *nn.Param
	positions *nn.Param // nil unless they are learned
	units     []*unit   // blocks that backward recomputes: the first ones
	blocks    []Block
	norm      *nn.Param
	head      *nn.Param // the embedding itself if tied
	params    []*nn.Param

	dropEmbedding autograd.Drop
}

// Block is one layer of a family: branches on the residual stream x [N, D].
type Block interface {
	autograd.Segment
	// shared returns the part that blocks of all families have.
	shared() *layer
}

// layer is the part that blocks of all families have: parameters, attention, and the dropout of their two branches.
type layer struct {
	params    []*nn.Param // in the order of the model's list
	attention attention

	dropAttention, dropMLP autograd.Drop
}

func (l *layer) shared() *layer { return l }

// New allocates a model. Weights are zero until Init or a load fills them.
func New(c Config, mem Memory) *Decoder {
	if mem.Device == nil {
		mem.Device = device.Host{}
	}
	m := &Decoder{Config: c, memory: mem.Device}
	b := newBuilder(c, mem)
	m.embed = b.table("embed", nn.Embedding, c.Vocab)
	m.positions = b.learnedPositions()
	for i := range c.Layers {
		m.blocks = append(m.blocks, b.block(i))
	}
	m.norm = b.norm("norm")
	m.head = m.embed
	if !c.TieEmbeddings {
		m.head = b.table("head", nn.Head, c.Vocab)
	}
	m.params = b.params
	m.SetRecompute(c.Recompute)
	m.drop(c.Dropout, c.StochasticDepth)
	return m
}

// Outline creates a model under a policy without allocating memory, for properties that do not depend on its numbers.
func Outline(c Config, p precision.Policy) *Decoder {
	return New(c, MemoryOf(device.Null{}, p, tensor.NewMeasure("parameters"), tensor.NewMeasure("gradients")))
}

// Init sets every parameter to its initial values for the seed.
func (m *Decoder) Init(seed uint64) {
	for i, p := range m.params {
		p.Init(m.memory, seed, i)
	}
}

// Params returns the parameters in a fixed order; a tied head appears once, as the embedding.
func (m *Decoder) Params() []*nn.Param { return m.params }

// Count returns the number of parameters.
func (m *Decoder) Count() int64 {
	var n int64
	for _, p := range m.params {
		n += int64(p.Value.Len())
	}
	return n
}

// Bytes returns the size of the parameters.
func (m *Decoder) Bytes() int64 {
	var n int64
	for _, p := range m.params {
		n += int64(p.Value.Len()) * int64(p.Value.DType().Size())
	}
	return n
}

// Forward returns the final normalised hidden states [N, D] of tokens ids [N].
func (m *Decoder) Forward(t *autograd.Tape, ids *tensor.Tensor, seq *autograd.Sequence) *autograd.Var {
	x := t.Embedding(&m.embed.Param, ids) // [N, D]
	if m.positions != nil {
		x = t.AddEmbedding(x, &m.positions.Param, &seq.Pos)
	}
	if f := m.Config.MuP.inputScale(); f != 1 {
		x = t.ScaleStream(x, f)
	}
	x = t.Dropout(x, m.dropEmbedding, seq)
	seq.IDs = ids
	if m.Config.X0Skip {
		seq.First = t.Remember(x) // [N, D]
	}
	for _, u := range m.units {
		x = t.Recompute(u, x, seq) // [N, D]
	}
	for _, b := range m.blocks[m.Config.Recompute.Whole:] {
		x = t.Block(b, x, seq) // [N, D]
	}
	gain := &m.norm.Param
	if f := m.Config.logitScale(); f != 1 {
		gain = t.ScaleParam(gain, f) // logits are linear in the gain
	}
	if gain.Bias != nil {
		return t.LayerNorm(x, gain, m.Config.NormEps) // [N, D]
	}
	return t.RMSNorm(x, gain, m.Config.NormEps) // [N, D]
}

// Loss writes each token's cross-entropy to b.Losses. If the tape records, it also computes the gradients of their
// sum, including the z-loss if b has one.
func (m *Decoder) Loss(t *autograd.Tape, b *Batch) {
	h := m.Forward(t, &b.Tokens, &b.Seq)
	o := device.LossOptions{Softcap: m.Config.LogitSoftcap, ZLoss: b.ZLoss, LogZ: &b.LogZ, Labels: b.Labels, FirstLabel: b.FirstLabel}
	if b.Labels != (tensor.RNG{}) {
		o.ZLoss = 0
	}
	t.LogitBytes = m.Config.LogitBytes
	t.HeadLoss(h, &m.head.Param, &b.Targets, &b.Losses, o) // never forms [N, V]
}

// Logits returns the logits [to−from, V] of tokens [from, to) of the batch, for sampling. They are valid until the
// tape's Reset.
func (m *Decoder) Logits(t *autograd.Tape, b *Batch, from, to int) *tensor.Tensor {
	h := m.Forward(t, &b.Tokens, &b.Seq)
	return t.Logits(h, &m.head.Param, from, to, m.Config.LogitSoftcap)
}
