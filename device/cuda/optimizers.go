//go:build cuda && linux

package cuda

import (
	"math"

	"anneal/device"
	"anneal/tensor"
)

// optimizerThreads is the number of threads per block; each changes 16 bytes of every tensor.
const optimizerThreads = 256

// change starts a kernel of optimizers.cu that changes p, with g, and its state, all with the same length and dtype.
func (d *Device) change(op, kernel string, p *tensor.Tensor, others ...*tensor.Tensor) *call {
	for _, t := range others {
		length(op, "a tensor", t, p.Len())
		dtype(op, "a tensor", t, p.DType())
	}
	dtype(op, "the parameter", p, arithmetic(p))
	c := d.begin("optimizers", kernel, p.DType())
	c.tensor(p)
	for _, t := range others {
		c.tensor(t)
	}
	c.int(p.Len())
	return c
}

// vectors returns the number of blocks for n elements of t's dtype, at 16 bytes per thread.
func vectors(t *tensor.Tensor, threads, n int) int {
	return ceilDiv(n, threads*16/t.DType().Size())
}

// reals adds constants of A.
func (c *call) reals(x ...float64) *call {
	for _, v := range x {
		c.real(v)
	}
	return c
}

// perVector launches a kernel in which each thread processes 16 bytes of the elements of t.
func (c *call) perVector(t *tensor.Tensor) {
	c.launch(vectors(t, optimizerThreads, t.Len()), optimizerThreads, 0)
}

// floor returns the smallest u·p at which p decays.
func floor(cautious bool) float64 {
	if cautious {
		return 0
	}
	return math.Inf(-1)
}

// AdamW implements device.Device.
func (d *Device) AdamW(p, g, m, v *tensor.Tensor, o device.AdamW) {
	if o.Coupled {
		c := d.change("AdamW", "adam", p, g, m, v)
		c.reals(o.Scale, o.Beta1, 1-o.Beta1, o.Beta2, 1-o.Beta2, o.Decay, o.LR*o.Correct1, o.Correct2, o.Eps).
			perVector(p)
		return
	}
	c := d.change("AdamW", "adamw", p, g, m, v)
	c.adamW(o).perVector(p)
}

// adamW adds the constants of decoupled decay.
func (c *call) adamW(o device.AdamW) *call {
	return c.reals(o.Scale, o.Beta1, 1-o.Beta1, o.Beta2, 1-o.Beta2, o.LR*o.Decay, o.LR*o.Correct1, o.Correct2, o.Eps,
		floor(o.Cautious))
}

// Momentum implements device.Device.
func (d *Device) Momentum(p, g, m *tensor.Tensor, o device.Momentum) {
	rateG, rateM := 0.0, o.LR
	if o.Nesterov {
		rateG, rateM = o.LR, o.LR*o.Beta
	}
	d.change("Momentum", "momentum", p, g, m).reals(o.Scale, o.Decay, o.Beta, o.Keep, rateG, rateM).perVector(p)
}

// Lion implements device.Device.
func (d *Device) Lion(p, g, m *tensor.Tensor, o device.Lion) {
	c := d.change("Lion", "lion", p, g, m)
	c.reals(o.Scale, o.Beta1, 1-o.Beta1, o.Beta2, 1-o.Beta2, o.LR*o.Decay, o.LR, floor(o.Cautious)).perVector(p)
}

// AdEMAMix implements device.Device.
func (d *Device) AdEMAMix(p, g, m1, m2, v *tensor.Tensor, o device.AdEMAMix) {
	c := d.change("AdEMAMix", "ademamix", p, g, m1, m2, v)
	c.reals(o.Scale, o.Beta1, 1-o.Beta1, o.Beta2, 1-o.Beta2, o.Beta3, 1-o.Beta3)
	c.reals(o.LR*o.Correct1, o.LR*o.Alpha, o.Correct2, o.Eps, o.LR*o.Decay, floor(o.Cautious)).perVector(p)
}

// Descend implements device.Device.
func (d *Device) Descend(p, u *tensor.Tensor, o device.Descend) {
	d.change("Descend", "descend", p, u).reals(o.LR, o.Shrink, floor(o.Cautious)).perVector(p)
}

// Sophia implements device.Device.
func (d *Device) Sophia(p, g, m, h *tensor.Tensor, o device.Sophia) int {
	blocks := vectors(p, optimizerThreads, p.Len())
	counts, sum := d.scratch(4*blocks), d.answers(1)
	c := d.change("Sophia", "sophia", p, g, m, h)
	c.reals(o.Beta1, (1-o.Beta1)*o.Scale, o.Rho, 1e-15, o.LR, o.LR*o.Decay, floor(o.Cautious))
	c.pointer(counts)
	c.perVector(p)
	c = d.begin("optimizers", "total", p.DType())
	c.pointer(sum)
	c.pointer(counts)
	c.int(blocks)
	c.launch(1, 1024, 0)
	if inside := d.collect(1)[0]; inside == inside {
		return int(inside)
	}
	return 0 // after a failure
}

// Anchor implements device.Device.
func (d *Device) Anchor(p, start, weight *tensor.Tensor, rate float64) {
	d.change("Anchor", "anchor", p, start, weight).reals(rate).perVector(p)
}

// MeanSquare implements device.Device.
func (d *Device) MeanSquare(h, g *tensor.Tensor, beta, weight float64) {
	d.change("MeanSquare", "mean_square", h, g).reals(beta, weight).perVector(h)
}
