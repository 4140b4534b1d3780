package lab

import (
	"math"

	"anneal/device"
	"anneal/tensor"
)

// The activations that a coordinate check measures.
const (
	seenQKV       = iota // queries, keys and values, before norm and rotation
	seenAttention        // the output of attention
	seenFFN              // the hidden units of the feed-forward layer
	seenResidual         // the residual stream after the last layer
	seenLogits
	seenKinds
)

var seenNames = [seenKinds]string{"qkv", "attention", "ffn", "residual", "logits"}

// A probe is a device that records the mean magnitude of activations when kernels read and write them. Models and the
// tape do not know about it.
type probe struct {
	device.Device
	layers int

	norms int // norms of the residual stream in this pass
	sum   [seenKinds]float64
	n     [seenKinds]float64
}

// take returns the mean magnitudes since the last call, over all layers. Kinds that were not seen are NaN.
func (p *probe) take() (mean [seenKinds]float64) {
	for k := range mean {
		mean[k] = p.sum[k] / p.n[k]
	}
	*p = probe{Device: p.Device, layers: p.layers}
	return mean
}

// see adds the mean magnitude of t. Of a large tensor it samples some columns of every row, different ones in each
// row. It uses every row because rows are positions, and these differ in size: the first one attends only to itself.
func (p *probe) see(kind int, t *tensor.Tensor) {
	const enough = 1 << 15
	t = device.OnHost(p.Device, t)
	rows, cols := t.Rows(), t.Cols()
	stride := min(max(rows*cols/enough, 1), cols)
	sum, n := 0.0, 0
	for r := range rows {
		for i := r % stride; i < cols; i += stride {
			sum += math.Abs(t.Float64(r*cols + i))
			n++
		}
	}
	p.sum[kind] += sum / float64(n)
	p.n[kind]++
}

// QKNorm implements device.Device.
func (p *probe) QKNorm(qkv, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads, eps float64) {
	p.see(seenQKV, qkv)
	p.Device.QKNorm(qkv, xhat, rstd, gainQ, gainK, heads, eps)
}

// RoPE implements device.Device.
func (p *probe) RoPE(qkv, cos, sin, pos *tensor.Tensor, heads device.Heads, inverse bool) {
	if !inverse {
		p.projections(qkv)
	}
	p.Device.RoPE(qkv, cos, sin, pos, heads, inverse)
}

// Attention implements device.Device.
func (p *probe) Attention(out, lse, qkv *tensor.Tensor, heads device.Heads, mask device.Mask) {
	p.projections(qkv)
	p.Device.Attention(out, lse, qkv, heads, mask)
	p.see(seenAttention, out)
}

// LinearAttention implements device.Device.
func (p *probe) LinearAttention(out, norm, qkv, gates *tensor.Tensor, heads device.Heads, mask device.Mask) {
	p.projections(qkv)
	p.Device.LinearAttention(out, norm, qkv, gates, heads, mask)
	p.see(seenAttention, out)
}

// projections records queries, keys and values unless an earlier kernel of the layer already has.
func (p *probe) projections(qkv *tensor.Tensor) {
	if p.n[seenQKV] == p.n[seenAttention] {
		p.see(seenQKV, qkv)
	}
}

// SwiGLU implements device.Device.
func (p *probe) SwiGLU(act, gu *tensor.Tensor) {
	p.Device.SwiGLU(act, gu)
	p.see(seenFFN, act)
}

// GeGLU implements device.Device.
func (p *probe) GeGLU(act, gu *tensor.Tensor) {
	p.Device.GeGLU(act, gu)
	p.see(seenFFN, act)
}

// ReLUSquared implements device.Device.
func (p *probe) ReLUSquared(act, x *tensor.Tensor) {
	p.Device.ReLUSquared(act, x)
	p.see(seenFFN, act)
}

// GELU implements device.Device.
func (p *probe) GELU(act, x *tensor.Tensor) {
	p.Device.GELU(act, x)
	p.see(seenFFN, act)
}

// RMSNorm implements device.Device.
func (p *probe) RMSNorm(y, xhat, rstd, x, gain *tensor.Tensor, eps float64) {
	p.norm(x)
	p.Device.RMSNorm(y, xhat, rstd, x, gain, eps)
}

// LayerNorm implements device.Device.
func (p *probe) LayerNorm(y, xhat, rstd, x, gain, bias *tensor.Tensor, eps float64) {
	p.norm(x)
	p.Device.LayerNorm(y, xhat, rstd, x, gain, bias, eps)
}

// norm counts the norms of the residual stream: two in each layer, and the last.
func (p *probe) norm(x *tensor.Tensor) {
	if p.norms == 2*p.layers {
		p.see(seenResidual, x)
	}
	p.norms++
}

// CrossEntropy implements device.Device.
func (p *probe) CrossEntropy(loss, dlogits, logits, targets *tensor.Tensor, o device.LossOptions) {
	p.see(seenLogits, logits)
	p.Device.CrossEntropy(loss, dlogits, logits, targets, o)
}
