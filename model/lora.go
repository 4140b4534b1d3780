package model

import (
	"math"
	"path"
	"slices"
	"strings"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
)

// LoRA (Hu et al. 2021, arXiv 2106.09685) trains two thin matrices beside a frozen weight:
//
//	W + α/R · B·A    A [R, I], B [O, R]
//
// A starts normal with a variance of 1/(3·I), the variance of peft's uniform initialisation; B starts at zero, so that
// training begins with the model as it is. A fused weight, such as that of queries, keys and values, has one A for all
// of its parts. All other weights are frozen: they need no gradients and no optimizer state.
//
// Memory: frozen weights without gradients and state; for each adapter R·(I+O) weights with both. Time: no products
// for the gradients of frozen weights, a third of the operations of a layer. Not for pre-training, nor for teaching a
// model much that is new to it: full fine-tuning learns more and forgets more (Biderman et al. 2024, arXiv
// 2405.09673).

// The ends of the names of the two matrices.
const (
	loraDown = ".lora_a"
	loraUp   = ".lora_b"
)

// adapts reports whether a matrix of a layer, such as "attention.qkv", has an adapter.
func (c Config) adapts(name string) bool {
	if c.LoRARank == 0 || c.LoRATargets == "" {
		return c.LoRARank > 0
	}
	for target := range strings.SplitSeq(c.LoRATargets, ",") {
		if ok, _ := path.Match(strings.TrimSpace(target), name); ok {
			return true
		}
	}
	return false
}

// adapters declares the adapters of the layer's matrices, which were declared from number first on.
func (b *builder) adapters(first int) {
	c := b.config
	for _, p := range b.params[first:] {
		if p.Role != nn.Matrix || !c.adapts(strings.TrimPrefix(p.Name, b.at)) {
			continue
		}
		name, out, in := strings.TrimPrefix(p.Name, b.at), p.Shape[0], p.Shape[1]
		down := b.add(name+loraDown, nn.Matrix, nn.Growth{In: 1, Out: 1, Depth: 1}, c.LoRARank, in)
		down.Std = 1 / math.Sqrt(3*float64(in))
		up := b.add(name+loraUp, nn.Matrix, nn.Growth{In: 1, Out: 1, Depth: 1}, out, c.LoRARank)
		p.Adapter = &autograd.Adapter{
			Down: &down.Param, Up: &up.Param, Scale: c.LoRAAlpha / float64(c.LoRARank),
		}
		if c.LoRADora {
			p.Adapter.Magnitude = b.magnitude(name, out)
		}
	}
}

// freeze freezes all parameters but those of adapters, if there are any.
func (m *Decoder) freeze() {
	if m.Config.LoRARank == 0 {
		return
	}
	m.embed.Looked = true
	if m.positions != nil {
		m.positions.Looked = true
	}
	if m.bigram != nil {
		m.bigram.table.Looked = true
	}
	for _, p := range m.params {
		p.Frozen = !IsAdapter(p)
		p.FP8Products = false
	}
}

// IsAdapter reports whether a parameter belongs to an adapter.
func IsAdapter(p *nn.Param) bool {
	_, magnitude := Magnitude(p)
	return strings.HasSuffix(p.Name, loraDown) || strings.HasSuffix(p.Name, loraUp) || magnitude
}

// frozenFLOPs counts the products that training saves per token: those for the gradients of frozen weights.
func (m *Decoder) frozenFLOPs() (sum float64) {
	if m.Config.LoRARank == 0 {
		return 0
	}
	sum = 2 * float64(m.head.Value.Len())
	for _, p := range m.params {
		if p.Frozen && p.Role == nn.Matrix && (p.Adapter == nil || p.Adapter.Magnitude == nil) {
			sum += 2 * float64(p.Value.Len())
		}
	}
	return sum
}

// Merge adds the adapters to their weights, which are on the device d, and removes the adapters. The model computes
// the same except for rounding, and has the shape that it had before LoRA.
func (m *Decoder) Merge(d device.Device) {
	for _, p := range m.params {
		a := p.Adapter
		if a == nil {
			continue
		}
		d.MatMul(&p.Value, &a.Up.Value, &a.Down.Value, device.NN, device.MatMulOptions{ // [O, R]·[R, I]
			Operand: p.Value.DType(), Scale: a.Scale, Accumulate: true,
		})
		if a.Magnitude != nil {
			d.WeightNorm(&p.Value, &a.Magnitude.Value)
		}
		p.Adapter = nil
	}
	weights := func(list []*nn.Param) []*nn.Param { return slices.DeleteFunc(slices.Clone(list), IsAdapter) }
	for _, b := range m.blocks {
		b.params = weights(b.params)
	}
	m.params = weights(m.params)
	m.Config.RemoveAdapters()
}

// RemoveAdapters makes c the shape of the model with its adapters merged.
func (c *Config) RemoveAdapters() {
	c.LoRARank, c.LoRAAlpha, c.LoRATargets, c.LoRADora = 0, 0, "", false
}
