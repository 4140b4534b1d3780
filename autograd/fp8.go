package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// FP8 defines how the three products of a linear layer use FP8 operands (Micikevicius et al. 2022, arXiv 2209.05433):
//
//	y  = (1/(sx·sw)) · q(sx·x)·q(sw·w)ᵀ         q rounds to E4M3: enough range, one digit more
//	dx = (1/(sy·sw)) · q'(sy·dy)·q(sw·w)        q' rounds to E5M2, for the range of gradients
//	dw += (1/(sy·sx)) · q'(sy·dy)ᵀ·q(sx·x)      sums in FP32
//
// One scale per tensor moves its values to the dense range of the format; package precision finds the scales.
// Quantised operands are stored in BF16, which holds each FP8 number exactly, in scratch memory during the products.
// With Blocks there is a scale for each block instead, and no Scaler.
type FP8 struct {
	X, W, DY Scaler
	Blocks   Blocks
}

// A Scaler returns the factor that multiplies a tensor before it is quantised. The factor of a tensor is constant
// within a step. With record, the Scaler records the tensor once, however often it is called.
type Scaler interface {
	Scale(d device.Device, x *tensor.Tensor, record bool) float64
}

// An operand is a quantised tensor with its format and the inverse of its scale.
type operand struct {
	*tensor.Tensor
	format  tensor.DType
	inverse float64
}

// quantises reports whether products with w use FP8 operands.
func (t *Tape) quantises(w *Param) bool { return t.Types.FP8 && w.FP8 != nil }

// quantised returns x quantised, in temporary memory.
func (t *Tape) quantised(x *tensor.Tensor, s Scaler, format tensor.DType) operand {
	scale := s.Scale(t.measuring(), x, t.train && !t.rerunning)
	q := t.ref(t.temp.New(tensor.BF16, x.Shape()...))
	t.Device.Quantize(q, x, format, scale)
	return operand{q, format, 1 / scale}
}

// measuring returns the device on which Scalers measure the largest magnitude of a tensor, over all peers' parts of
// it.
func (t *Tape) measuring() device.Device {
	if t.peers() == 1 {
		return t.Device
	}
	if t.largest == nil {
		t.largest = &largest{tape: t}
	}
	t.largest.Device = t.Device
	return t.largest
}

// largest is a device that measures tensors whose parts are on all peers.
type largest struct {
	device.Device
	tape *Tape
}

// MaxAbs implements device.Device.
func (l *largest) MaxAbs(x *tensor.Tensor) float64 {
	t := l.tape
	mine := l.Device.MaxAbs(x)
	for _, other := range t.tellPeers(mine) {
		mine = max(mine, other) // NaN if one is
	}
	return mine
}

// product multiplies two quantised operands and adds the bias unless it is nil.
func (t *Tape) product(dst *tensor.Tensor, a, b operand, bias *tensor.Tensor, form device.Form, add bool) {
	t.Device.MatMul(dst, a.Tensor, b.Tensor, form, device.MatMulOptions{
		Operand: tensor.BF16, Scale: a.inverse * b.inverse, Accumulate: add, Bias: bias,
		FP8: [2]tensor.DType{a.format, b.format},
	})
}

// forwardFP8 writes x·wᵀ plus the bias to dst, or adds it.
func (t *Tape) forwardFP8(dst, x *tensor.Tensor, w *Param, add bool) {
	if w.FP8.Blocks.Long > 0 {
		t.forwardBlocks(dst, x, w, add)
		return
	}
	mark, refs := t.temp.Mark(), t.tensorN
	t.product(dst, t.quantised(x, w.FP8.X, tensor.F8E4M3), t.quantised(&w.Value, w.FP8.W, tensor.F8E4M3), t.biasOf(w),
		device.NT, add)
	t.temp.Release(mark)
	t.tensorN = refs
}

// backwardFP8 adds the gradients of x·wᵀ to those of v, whose value is x, and of w.
func (t *Tape) backwardFP8(v *Var, x *tensor.Tensor, w *Param, dy *tensor.Tensor) {
	if w.FP8.Blocks.Long > 0 {
		t.backwardBlocks(v, x, w, dy)
		return
	}
	dx, add := t.gradOf(v)
	mark, refs := t.temp.Mark(), t.tensorN
	q := t.quantised(dy, w.FP8.DY, tensor.F8E5M2)
	inner, innerRefs := t.temp.Mark(), t.tensorN
	t.product(&w.Grad, q, t.quantised(x, w.FP8.X, tensor.F8E4M3), nil, device.TN, w.written)
	w.written = true
	t.temp.Release(inner)
	t.tensorN = innerRefs
	t.product(dx, q, t.quantised(&w.Value, w.FP8.W, tensor.F8E4M3), nil, device.NN, add)
	t.temp.Release(mark)
	t.tensorN = refs
}
