package model

import (
	"fmt"
	"strings"

	"anneal/nn"
)

// builder creates the parameters of a model in order. Its methods know the place of a weight in the model, and derive
// its initialisation (init.go) and its muP scaling (mup.go) from it.
type builder struct {
	config Config
	mem    Memory
	params []*nn.Param
	at     string // prefix of names, of the current layer
	layer  int    // number of the current layer
	rope   nn.RoPE
	seen   []*pattern // by layer

	width, ffn, head, depth float64 // growth over the base model of muP; 1 without muP
}

func newBuilder(c Config, mem Memory) *builder {
	b := &builder{config: c, mem: mem, width: c.MuP.width(c), ffn: 1, head: 1, depth: c.MuP.depth(c)}
	if c.MuP.on() {
		b.ffn, b.head = float64(c.FFN)/float64(c.MuP.FFN), float64(c.HeadDim)/float64(c.MuP.HeadDim)
	}
	if c.HasPositions("rope") {
		b.rope = nn.NewRoPE(mem.Device, mem.Params, mem.DType, c.Context, c.HeadDim, c.RopeTheta, c.RopeScaling)
	}
	b.seen = patterns(c)
	return b
}

// block creates layer i of the family.
func (b *builder) block(i int) Block {
	first := len(b.params)
	b.at, b.layer = fmt.Sprintf("layers.%d.", i), i
	var x Block
	switch b.config.Family {
	case "gpt2":
		x = newGPT2Block(b)
	case "anneal":
		x = newAnnealBlock(b)
	default:
		x = newLlamaBlock(b)
	}
	b.at = ""
	x.shared().params = b.params[first:len(b.params):len(b.params)]
	return x
}

// norm creates the gain [D] of a norm on the residual stream, with the bias of LayerNorm if the family has biases.
func (b *builder) norm(name string) *nn.Param {
	p := b.gain(name, b.config.Dim, b.width)
	b.bias(p, b.config.Dim)
	return p
}

// bias gives the newest weight a bias [n], if the family has biases. It starts at 0. It grows like the output of the
// weight, and like the weight with the depth of the model.
func (b *builder) bias(p *nn.Param, n int) {
	if b.config.biased() {
		growth := nn.Growth{In: 1, Out: p.Growth.Out, Depth: p.Growth.Depth}
		p.Bias = &b.add(strings.TrimPrefix(p.Name, b.at)+".bias", nn.Bias, growth, n).Param
	}
}

// gain creates the gain [n] of a norm, whose length has grown by growth.
func (b *builder) gain(name string, n int, growth float64) *nn.Param {
	return b.add(name, nn.Norm, nn.Growth{In: 1, Out: growth, Depth: 1}, n)
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
	return p
}

// reader creates a fused matrix [rows of all parts, D] that reads the residual stream.
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
	b.bias(p, rows)
	return p
}

// writer creates a matrix [D, in] that writes to the residual stream.
func (b *builder) writer(name string, in int, growth float64) *nn.Param {
	p := b.add(name, nn.Matrix, nn.Growth{In: growth, Out: b.width, Depth: b.depth}, b.config.Dim, in)
	if !b.config.zeroes("residual") {
		p.Std = b.config.std(output, b.config.Dim, in, p.Growth)
	}
	b.bias(p, b.config.Dim)
	return p
}

func (b *builder) add(name string, role nn.Role, growth nn.Growth, shape ...int) *nn.Param {
	p := &nn.Param{Name: b.at + name, Role: role, Growth: growth}
	p.Value = b.mem.Params.New(b.mem.weight(role), shape...)
	if b.mem.Grads != nil {
		p.Grad = b.mem.Grads.New(b.mem.DType, shape...)
	}
	if role == nn.Matrix && b.mem.FP8 != nil {
		p.FP8 = b.mem.FP8.New(b.mem.Params)
	}
	b.params = append(b.params, p)
	return p
}
