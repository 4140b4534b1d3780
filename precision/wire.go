package precision

import (
	"anneal/device"
	"anneal/tensor"
)

// A Wire is the number format in which gradients are sent to the rank that sums them: f32, bf16 or int8. Gradients are
// rounded to it on any number of ranks, even on one, so results depend on the format but not on the number of ranks.
//
//	bf16: to nearest even
//	int8: up or down at random, without bias, in blocks of device.Block elements with a scale each
//
// Memory: none between steps. Default: f32, which rounds nothing.
type Wire string

// The formats.
const (
	WireF32  Wire = "f32"
	WireBF16 Wire = "bf16"
	WireInt8 Wire = "int8"
)

// A WireKey selects the random numbers with which a gradient is rounded. They depend on the place of an element in the
// parameter, not on the rank that rounds it. Param and Block should be below 2¹⁶; above, random numbers repeat.
type WireKey struct {
	Seed  uint64
	Step  int // of the optimizer
	Param int // number of the parameter in the model
	Block int // number of the block of micro-batches in the step
}

// random returns the stream of the key, and the block in the stream that belongs to an element, whose number is a
// multiple of device.Stretch.
func (k WireKey) random(element int) (rng tensor.RNG, first uint64) {
	rng = tensor.NewRNG(k.Seed, tensor.PurposeWire, uint32(k.Step))
	return rng, uint64(uint16(k.Param))<<48 + uint64(uint16(k.Block))<<32 + uint64(element/8)
}

// Coded is a gradient in the format of a wire.
type Coded struct {
	Numbers tensor.Tensor // F32 or F64, BF16, or int8 as U8
	Scales  tensor.Tensor // of int8; else without memory
}

// Layout allocates n coded numbers of a gradient with dtype grad.
func (w Wire) Layout(a *tensor.Arena, n int, grad tensor.DType) (c Coded) {
	switch w {
	case WireBF16:
		c.Numbers = a.New(tensor.BF16, n)
	case WireInt8:
		c.Numbers = a.New(tensor.U8, n)
		c.Scales = a.New(grad, (n+device.Block-1)/device.Block)
	default:
		c.Numbers = a.New(grad, n)
	}
	return c
}

// Head returns the first n numbers.
func (c *Coded) Head(n int) Coded {
	h := Coded{Numbers: c.Numbers.Slice(0, n)}
	if !c.Scales.IsZero() {
		h.Scales = c.Scales.Slice(0, (n+device.Block-1)/device.Block)
	}
	return h
}

// Encode rounds g. The first element of g must have a number in the parameter that is a multiple of device.Stretch.
func (c *Coded) Encode(dev device.Device, g *tensor.Tensor, k WireKey, element int) {
	if c.Scales.IsZero() {
		dev.Copy(&c.Numbers, g)
		return
	}
	rng, first := k.random(element)
	dev.EncodeInt8(&c.Numbers, &c.Scales, g, rng, first)
}

// Decode writes the numbers to g.
func (c *Coded) Decode(dev device.Device, g *tensor.Tensor) {
	if c.Scales.IsZero() {
		dev.Copy(g, &c.Numbers)
		return
	}
	dev.DecodeInt8(g, &c.Numbers, &c.Scales)
}

// A Rounder rounds gradients in place as if they were sent.
type Rounder struct {
	room, part Coded
	run        tensor.Tensor
}

// rounderRun is the number of elements that a Rounder encodes at once.
const rounderRun = 64 * device.Stretch

// NewRounder allocates room for gradients of up to n elements with dtype grad. For f32 it is nil: nothing is rounded.
func (w Wire) NewRounder(a *tensor.Arena, n int, grad tensor.DType) *Rounder {
	if w == WireF32 {
		return nil
	}
	return &Rounder{room: w.Layout(a, min(n, rounderRun), grad)}
}

// Round rounds all of a parameter's gradient.
func (r *Rounder) Round(dev device.Device, g *tensor.Tensor, k WireKey) {
	if r == nil {
		return
	}
	flat := g.Reshape(g.Len())
	for from := 0; from < g.Len(); from += rounderRun {
		r.run = flat.Slice(from, min(from+rounderRun, g.Len()))
		r.part = r.room.Head(r.run.Len())
		r.part.Encode(dev, &r.run, k, from)
		r.part.Decode(dev, &r.run)
	}
}
