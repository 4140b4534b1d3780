package model

import (
	"fmt"
	"strings"

	"anneal/nn"
)

// builder declares the parameters of a model in order. Its methods know the place of a weight in the model, and derive
// its initialisation (init.go) and its muP scaling (mup.go) from it.
type builder struct {
	config Config
	part   Part // the part of the model that this rank has
	params []*nn.Param
	ropes  []*rope
	at     string     // prefix of names, of the current layer
	layer  int        // number of the current layer
	seen   []*pattern // by layer

	gateUp, down []nn.Part // of the experts of a layer: one list for all layers, since there may be millions

	width, ffn, head, depth float64 // growth over the base model of muP; 1 without muP
}

func newBuilder(c Config, part Part) *builder {
	b := &builder{config: c, part: part, width: c.widthGrowth(), ffn: 1, head: 1, depth: c.depthGrowth()}
	if c.MuP {
		b.ffn, b.head = float64(c.FFN)/float64(c.MuPBaseFFN), float64(c.HeadDim)/float64(c.MuPBaseHeadDim)
	}
	b.seen = patterns(c, part)
	return b
}

// block declares layer i of the family.
func (b *builder) block(i int) *block {
	first := len(b.params)
	b.at, b.layer = fmt.Sprintf("layers.%d.", i), i
	var x *block
	switch b.config.Family {
	case "gpt2":
		x = newGPT2Block(b)
	case "anneal":
		x = newAnnealBlock(b)
	case "qwen3_moe":
		x = newQwen3MoEBlock(b)
	case "olmo2":
		x = newOlmo2Block(b)
	case "gemma2":
		x = newGemma2Block(b)
	case "gemma3":
		x = newGemma3Block(b)
	case "", "llama", "phi3":
		x = newLlamaBlock(b)
	default:
		panic("model: unknown family " + b.config.Family)
	}
	b.adapters(first)
	b.at = ""
	x.params = b.params[first:len(b.params):len(b.params)]
	return x
}

// norm creates the gain [D] of a norm on the residual stream, with the bias of LayerNorm if the family has biases.
func (b *builder) norm(name string) *nn.Param {
	p := b.gain(name, b.config.Dim, b.width)
	b.part.sumTokens(p)
	if bias := b.bias(p, b.config.Dim); bias != nil {
		b.part.sumTokens(bias)
	}
	return p
}

// bias gives the newest weight p a bias [n] if the family has biases or p is a projection of attention with a bias;
// else it returns nil. The bias starts at 0. Its muP growth is that of the weight's output and depth.
func (b *builder) bias(p *nn.Param, n int) *nn.Param {
	qkv := p.Name == b.at+"attention.qkv" || p.Name == b.at+"attention.global_qkv"
	if !b.config.biased() && !(b.config.QKVBias && qkv) {
		return nil
	}
	growth := nn.Growth{In: 1, Out: p.Growth.Out, Depth: p.Growth.Depth}
	bias := b.add(strings.TrimPrefix(p.Name, b.at)+".bias", nn.Bias, growth, n)
	p.Bias = &bias.Param
	return bias
}

// gain creates the gain [n] of a norm, whose length has grown by growth.
func (b *builder) gain(name string, n int, growth float64) *nn.Param {
	return b.add(name, nn.Norm, nn.Growth{In: 1, Out: growth, Depth: 1}, n)
}

// vocabulary creates a table with one row per token: the embedding or the head. In tensor parallelism a rank has some
// rows.
func (b *builder) vocabulary(name string, role nn.Role) *nn.Param {
	p := b.table(name, role, b.config.Vocab)
	b.part.cutTable(p)
	return p
}

// table creates weights [rows, D] with one row per token (the embedding or the head) or per position.
func (b *builder) table(name string, role nn.Role, rows int) *nn.Param {
	c := b.config
	growth := nn.Growth{In: 1, Out: b.width, Depth: 1}
	if role == nn.Head {
		growth = nn.Growth{In: b.width, Out: 1, Depth: 1}
	}
	p := b.add(name, role, growth, rows, c.Dim)
	if role == nn.Embedding || !c.zeroes("head") {
		p.Std = c.std(table, rows, c.Dim, p.Growth)
	}
	return p
}

// scalars creates learned factors with the given initial values.
func (b *builder) scalars(name string, start ...float64) *nn.Param {
	p := b.add(name, nn.Scalar, nn.Growth{In: 1, Out: 1, Depth: 1}, len(start))
	p.Start = start
	return p
}

// values creates a table [V, K·E] with the values of each token.
func (b *builder) values(name string) *nn.Param {
	c := b.config
	p := b.add(name, nn.Embedding, nn.Growth{In: 1, Out: b.width, Depth: 1}, c.Vocab, c.KVHeads*c.HeadDim)
	p.Std = c.std(table, c.Vocab, c.KVHeads*c.HeadDim, p.Growth)
	b.part.cutCols(p, c.HeadDim)
	b.part.sumRows(p, 0, b.part.sharers(c.KVHeads))
	return p
}

// columnParallel creates a fused matrix [rows of all parts, D] that reads the residual stream. In tensor parallelism a
// rank has all inputs and some outputs of every part, that is, some columns of y = x·Wᵀ (Shoeybi et al. 2019, arXiv
// 1909.08053). Groups of unit rows, such as those of a head, stay together.
func (b *builder) columnParallel(name string, growth float64, unit int, parts ...nn.Part) *nn.Param {
	p := b.reader(name, growth, parts...)
	b.part.cutRows(p, unit, parts)
	if bias := b.bias(p, p.Shape[0]); bias != nil {
		b.part.cutRows(bias, unit, parts)
	}
	return p
}

// reader creates a fused matrix [rows of all parts, D] that reads the residual stream, whole on every rank.
func (b *builder) reader(name string, growth float64, parts ...nn.Part) *nn.Param {
	rows := 0
	for _, part := range parts {
		rows += part.Rows
	}
	p := b.add(name, nn.Matrix, nn.Growth{In: b.width, Out: growth, Depth: 1}, rows, b.config.Dim)
	for i, part := range parts {
		parts[i].Std = b.config.std(inner, part.Rows, b.config.Dim, p.Growth)
	}
	p.Parts = parts
	return p
}

// rowParallel creates a matrix [D, in] that writes to the residual stream. In tensor parallelism the inputs of a rank
// are the outputs of its columnParallel matrices. The results of all ranks are summed; the bias is added once.
func (b *builder) rowParallel(name string, in int, growth float64, unit int) *nn.Param {
	p := b.add(name, nn.Matrix, nn.Growth{In: growth, Out: b.width, Depth: b.depth}, b.config.Dim, in)
	if !b.config.zeroes("residual") {
		p.Std = b.config.std(output, b.config.Dim, in, p.Growth)
	}
	b.part.cutCols(p, unit)
	if bias := b.bias(p, b.config.Dim); bias != nil {
		b.part.sumTokens(bias)
	}
	return p
}

func (b *builder) add(name string, role nn.Role, growth nn.Growth, shape ...int) *nn.Param {
	p := nn.Declare(b.at+name, role, shape...)
	p.Number = len(b.params)
	p.Growth, p.FP8Products = growth, role == nn.Matrix
	b.params = append(b.params, p)
	return p
}
