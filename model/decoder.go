package model

import (
	"fmt"
	"math"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// Decoder is a decoder-only transformer: a token embedding, the blocks of its family, a norm and a head. It runs unit
// by unit (units.go): Embed, Unit 0, 1, …, Finish and Loss. One tape may run all of them, or several tapes a part of
// the model each.
type Decoder struct {
	Config    Config
	memory    device.Memory
	embed     *nn.Param
	positions *nn.Param // nil unless they are learned
	bigram    *bigram   // nil without
	smear     *nn.Param // nil without
	blocks    []*block
	norm      *nn.Param
	head      *nn.Param // the embedding itself if tied
	params    []*nn.Param
	ropes     []*rope
	units     []unit
	part      Part
	chunks    [][2]int         // by chunk: its units [from, to)
	terms     []autograd.Term  // of SumPartial
	eight     autograd.Rounded // copies in 8 bits; nil without

	dropEmbedding autograd.Drop
}

// Declare returns a model whose parameters have no memory yet: they can be placed before Allocate. It panics with the
// error of c.Validate if there is one.
func Declare(c Config) *Decoder { return DeclarePart(c, Part{}) }

func declare(c Config, part Part) *Decoder {
	if err := c.Validate(); err != nil {
		panic(err.Error())
	}
	m := &Decoder{Config: c, part: part}
	b := newBuilder(c, part)
	m.embed = b.vocabulary("embed", nn.Embedding)
	m.positions = b.learnedPositions()
	m.bigram = b.bigrams()
	m.smear = b.smear()
	for i := range c.Layers {
		m.blocks = append(m.blocks, b.block(i))
	}
	m.norm = b.norm("norm")
	m.head = m.embed
	if !c.TieEmbeddings {
		m.head = b.vocabulary("head", nn.Head)
	}
	m.params, m.ropes = b.params, b.ropes
	m.freeze()
	m.drop(c.Dropout, c.StochasticDepth)
	m.wrap()
	return m
}

// New declares and allocates a whole model. Weights are zero until Init or a load fills them. It panics like Declare.
func New(c Config, mem Memory) *Decoder {
	m := Declare(c)
	m.Allocate(mem)
	return m
}

// Outline returns a model whose tensors have shapes but no memory, for questions that do not depend on the values of
// weights.
func Outline(c Config, p precision.Policy) *Decoder {
	return New(c, MemoryOf(device.Null{}, p, tensor.NewMeasure("parameters"), tensor.NewMeasure("gradients")))
}

// Init sets every parameter to its initial values for the seed.
func (m *Decoder) Init(seed uint64) {
	for _, p := range m.params {
		p.Init(m.memory, seed, p.Number)
	}
}

// Params returns the parameters in a fixed order; a tied head appears once, as the embedding.
func (m *Decoder) Params() []*nn.Param { return m.params }

// LayerOf returns the number of the layer that a parameter of a model belongs to; −1 for one outside of the layers.
func LayerOf(p *nn.Param) int {
	layer := 0
	if _, err := fmt.Sscanf(p.Name, "layers.%d.", &layer); err != nil {
		return -1
	}
	return layer
}

// Count returns the number of parameters.
func (m *Decoder) Count() int64 {
	var n int64
	for _, p := range m.params {
		n += int64(p.Len())
	}
	return n
}

// Active returns the number of parameters that one token uses: all but the experts that it does not choose.
func (m *Decoder) Active() int64 {
	sum := 0.0
	for _, p := range m.params {
		sum += p.Active()
	}
	return int64(math.Round(sum))
}

// Bytes returns the size of the parameters.
func (m *Decoder) Bytes() int64 {
	var n int64
	for _, p := range m.params {
		n += int64(p.Value.Len()) * int64(p.Value.DType().Size())
	}
	return n
}

// Embed begins the residual stream of tokens ids [N]: [N, D].
func (m *Decoder) Embed(t *autograd.Tape, ids *tensor.Tensor, seq *autograd.Sequence) *autograd.Var {
	x := t.Embedding(&m.embed.Param, ids) // [N, D]
	if m.positions != nil {
		x = t.AddEmbedding(x, &m.positions.Param, &seq.Pos)
	}
	if m.smear != nil {
		x = t.Smear(x, &m.smear.Param, &m.embed.Param, t.Previous(ids, seq, theOneBefore))
	}
	if m.bigram != nil {
		x = t.AddEmbedding(x, &m.bigram.table.Param, t.Previous(ids, seq, m.bigram.row))
	}
	if f := m.Config.embeddingScale(); f != 1 {
		x = t.ScaleStream(x, f)
	}
	x = t.Dropout(x, m.dropEmbedding, seq)
	seq.IDs = ids
	if m.Config.X0Skip {
		seq.First = t.Remember(x) // [N, D]
	}
	return x
}

// Finish normalises the stream x [N, D] after the last unit, for the head: [N, D], of all tokens.
func (m *Decoder) Finish(t *autograd.Tape, x *autograd.Var) *autograd.Var {
	gain := &m.norm.Param
	if f := m.Config.logitScale(); f != 1 {
		gain = t.ScaleParam(gain, f) // logits are linear in the gain
	}
	return t.Gather(norm(t, x, gain, m.Config.NormEps)) // [N, D]
}

// HeadLoss computes the cross-entropy of each token of b from the results h [N, D] of Finish and writes it to
// b.Losses. If the tape records, HeadLoss also computes the gradients of the sum of the losses, including the z-loss
// if b has one.
func (m *Decoder) HeadLoss(t *autograd.Tape, h *autograd.Var, b *Batch) {
	o := device.LossOptions{
		Softcap: m.Config.LogitSoftcap, ZLoss: b.ZLoss, LogZ: &b.LogZ, Labels: b.Labels, FirstLabel: b.FirstLabel,
	}
	switch {
	case b.Labels != (tensor.RNG{}):
		o.ZLoss = 0
	case t.Recording():
		o.Teacher = b.Teacher
	}
	if b.Behind {
		o.LogZ, o.Behind = nil, &b.LogZ
	}
	t.LogitBytes = m.Config.LogitBytes
	if c, few := b.few(t.Device); few && t.HeadLossOf(h, &m.head.Param, c, &b.Losses, o) {
		return
	}
	t.HeadLoss(h, &m.head.Param, &b.Targets, &b.Losses, o) // never forms [N, V]
}

// NextLogits returns the next-token logits [M, V] after the M tokens of b that have a target, at most half of all,
// from the results h [N, D] of Finish. They are in host memory and valid until the tape is used again.
func (m *Decoder) NextLogits(t *autograd.Tape, h *autograd.Var, b *Batch) *tensor.Tensor {
	c, few := b.few(t.Device)
	if !few {
		panic("model: NextLogits of a batch in which no token has a target, or most have one")
	}
	return t.CountedLogits(h, &m.head.Param, c, m.Config.LogitSoftcap)
}

// Forward returns the final normalised hidden states [N, D] of tokens ids [N].
func (m *Decoder) Forward(t *autograd.Tape, ids *tensor.Tensor, seq *autograd.Sequence) *autograd.Var {
	x := m.Embed(t, ids, seq) // [N, D]
	for i := range m.Units() {
		x = m.Unit(t, i, x, seq) // [N, D]
	}
	return m.Finish(t, x) // [N, D]
}

// Loss is Forward and HeadLoss of the batch b.
func (m *Decoder) Loss(t *autograd.Tape, b *Batch) {
	m.HeadLoss(t, m.Forward(t, &b.Tokens, &b.Seq), b)
}

// Logits returns the logits [to−from, V] of tokens [from, to) of the batch, for sampling. They are valid until the
// tape's Reset.
func (m *Decoder) Logits(t *autograd.Tape, b *Batch, from, to int) *tensor.Tensor {
	h := m.Forward(t, &b.Tokens, &b.Seq)
	return t.Logits(h, &m.head.Param, from, to, m.Config.LogitSoftcap)
}
