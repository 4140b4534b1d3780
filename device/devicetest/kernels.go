package devicetest

import (
	"slices"

	"anneal/device"
	"anneal/tensor"
)

// Each kernel is the CPU's. It uses the tensors' contents at the time of the call, and runs when its turn comes.

// MatMul implements device.Device.
func (d *Device) MatMul(dst, a, b *tensor.Tensor, form device.Form, opt device.MatMulOptions) {
	d.take(&dst, &a, &b, &opt.Bias)
	d.later(func() { d.cpu.MatMul(dst, a, b, form, opt) })
}

// RMSNorm implements device.Device.
func (d *Device) RMSNorm(y, xhat, rstd, x, gain *tensor.Tensor, eps float64) {
	d.take(&y, &xhat, &rstd, &x, &gain)
	d.later(func() { d.cpu.RMSNorm(y, xhat, rstd, x, gain, eps) })
}

// RMSNormAgain implements device.Device.
func (d *Device) RMSNormAgain(y, xhat, gain *tensor.Tensor) {
	d.take(&y, &xhat, &gain)
	d.later(func() { d.cpu.RMSNormAgain(y, xhat, gain) })
}

// RMSNormGrad implements device.Device.
func (d *Device) RMSNormGrad(dx, dgain, dy, xhat, rstd, gain *tensor.Tensor) {
	d.take(&dx, &dgain, &dy, &xhat, &rstd, &gain)
	d.later(func() { d.cpu.RMSNormGrad(dx, dgain, dy, xhat, rstd, gain) })
}

// LayerNorm implements device.Device.
func (d *Device) LayerNorm(y, xhat, rstd, x, gain, bias *tensor.Tensor, eps float64) {
	d.take(&y, &xhat, &rstd, &x, &gain, &bias)
	d.later(func() { d.cpu.LayerNorm(y, xhat, rstd, x, gain, bias, eps) })
}

// LayerNormAgain implements device.Device.
func (d *Device) LayerNormAgain(y, xhat, gain, bias *tensor.Tensor) {
	d.take(&y, &xhat, &gain, &bias)
	d.later(func() { d.cpu.LayerNormAgain(y, xhat, gain, bias) })
}

// LayerNormGrad implements device.Device.
func (d *Device) LayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain *tensor.Tensor) {
	d.take(&dx, &dgain, &dbias, &dy, &xhat, &rstd, &gain)
	d.later(func() { d.cpu.LayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain) })
}

// QKNorm implements device.Device.
func (d *Device) QKNorm(qkv, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads, eps float64) {
	d.take(&qkv, &xhat, &rstd, &gainQ, &gainK)
	d.later(func() { d.cpu.QKNorm(qkv, xhat, rstd, gainQ, gainK, heads, eps) })
}

// QKNormGrad implements device.Device.
func (d *Device) QKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK *tensor.Tensor, heads device.Heads) {
	d.take(&dqkv, &dgainQ, &dgainK, &xhat, &rstd, &gainQ, &gainK)
	d.later(func() { d.cpu.QKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK, heads) })
}

// RoPE implements device.Device.
func (d *Device) RoPE(qkv, cos, sin, pos *tensor.Tensor, heads device.Heads, inverse bool) {
	d.take(&qkv, &cos, &sin, &pos)
	d.later(func() { d.cpu.RoPE(qkv, cos, sin, pos, heads, inverse) })
}

// Attention implements device.Device.
func (d *Device) Attention(out, lse, qkv *tensor.Tensor, heads device.Heads, mask device.Mask) {
	d.take(&out, &lse, &qkv, &mask.Start)
	d.later(func() { d.cpu.Attention(out, lse, qkv, heads, mask) })
}

// AttentionGrad implements device.Device.
func (d *Device) AttentionGrad(dqkv, dout, out, lse, qkv *tensor.Tensor, heads device.Heads, mask device.Mask) {
	d.take(&dqkv, &dout, &out, &lse, &qkv, &mask.Start)
	d.later(func() { d.cpu.AttentionGrad(dqkv, dout, out, lse, qkv, heads, mask) })
}

// AttentionCached implements device.Device.
func (d *Device) AttentionCached(out, qkv *tensor.Tensor, cache *device.Cache, first int, heads device.Heads, mask device.Mask) {
	d.take(&out, &qkv, &mask.Start)
	cache = d.cache(cache)
	d.later(func() { d.cpu.AttentionCached(out, qkv, cache, first, heads, mask) })
}

// LinearAttention implements device.Device.
func (d *Device) LinearAttention(out, norm, qkv, gates *tensor.Tensor, heads device.Heads, mask device.Mask) {
	d.take(&out, &norm, &qkv, &gates, &mask.Start)
	d.later(func() { d.cpu.LinearAttention(out, norm, qkv, gates, heads, mask) })
}

// LinearAttentionGrad implements device.Device.
func (d *Device) LinearAttentionGrad(dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor, heads device.Heads, mask device.Mask) {
	d.take(&dqkv, &dgates, &dout, &out, &norm, &qkv, &gates, &mask.Start)
	d.later(func() { d.cpu.LinearAttentionGrad(dqkv, dgates, dout, out, norm, qkv, gates, heads, mask) })
}

// LinearAttentionCached implements device.Device.
func (d *Device) LinearAttentionCached(out, qkv, gates *tensor.Tensor, cache *device.Cache, first int, heads device.Heads) {
	d.take(&out, &qkv, &gates)
	cache = d.cache(cache)
	d.later(func() { d.cpu.LinearAttentionCached(out, qkv, gates, cache, first, heads) })
}

// SwiGLU implements device.Device.
func (d *Device) SwiGLU(act, gu *tensor.Tensor) {
	d.take(&act, &gu)
	d.later(func() { d.cpu.SwiGLU(act, gu) })
}

// SwiGLUGrad implements device.Device.
func (d *Device) SwiGLUGrad(dgu, act, dact, gu *tensor.Tensor) {
	d.take(&dgu, &act, &dact, &gu)
	d.later(func() { d.cpu.SwiGLUGrad(dgu, act, dact, gu) })
}

// GeGLU implements device.Device.
func (d *Device) GeGLU(act, gu *tensor.Tensor) {
	d.take(&act, &gu)
	d.later(func() { d.cpu.GeGLU(act, gu) })
}

// GeGLUGrad implements device.Device.
func (d *Device) GeGLUGrad(dgu, act, dact, gu *tensor.Tensor) {
	d.take(&dgu, &act, &dact, &gu)
	d.later(func() { d.cpu.GeGLUGrad(dgu, act, dact, gu) })
}

// ReLUSquared implements device.Device.
func (d *Device) ReLUSquared(act, x *tensor.Tensor) {
	d.take(&act, &x)
	d.later(func() { d.cpu.ReLUSquared(act, x) })
}

// ReLUSquaredGrad implements device.Device.
func (d *Device) ReLUSquaredGrad(dx, act, dact, x *tensor.Tensor) {
	d.take(&dx, &act, &dact, &x)
	d.later(func() { d.cpu.ReLUSquaredGrad(dx, act, dact, x) })
}

// MixStreams implements device.Device.
func (d *Device) MixStreams(x, kept, y, weights *tensor.Tensor) {
	d.take(&x, &kept, &y, &weights)
	d.later(func() { d.cpu.MixStreams(x, kept, y, weights) })
}

// MixStreamsGrad implements device.Device.
func (d *Device) MixStreamsGrad(dx, dy, dweights, kept, y, weights *tensor.Tensor) {
	d.take(&dx, &dy, &dweights, &kept, &y, &weights)
	d.later(func() { d.cpu.MixStreamsGrad(dx, dy, dweights, kept, y, weights) })
}

// AddValues implements device.Device.
func (d *Device) AddValues(qkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	d.take(&qkv, &table, &weight, &ids)
	d.later(func() { d.cpu.AddValues(qkv, table, weight, ids, heads) })
}

// AddValuesGrad implements device.Device.
func (d *Device) AddValuesGrad(dtable, dweight, dqkv, table, weight, ids *tensor.Tensor, heads device.Heads) {
	d.take(&dtable, &dweight, &dqkv, &table, &weight, &ids)
	d.later(func() { d.cpu.AddValuesGrad(dtable, dweight, dqkv, table, weight, ids, heads) })
}

// GELU implements device.Device.
func (d *Device) GELU(act, x *tensor.Tensor) {
	d.take(&act, &x)
	d.later(func() { d.cpu.GELU(act, x) })
}

// GELUGrad implements device.Device.
func (d *Device) GELUGrad(dx, act, dact, x *tensor.Tensor) {
	d.take(&dx, &act, &dact, &x)
	d.later(func() { d.cpu.GELUGrad(dx, act, dact, x) })
}

// Embedding implements device.Device.
func (d *Device) Embedding(x, table, ids *tensor.Tensor) {
	d.take(&x, &table, &ids)
	d.later(func() { d.cpu.Embedding(x, table, ids) })
}

// EmbeddingGrad implements device.Device.
func (d *Device) EmbeddingGrad(dtable, dx, ids *tensor.Tensor) {
	d.take(&dtable, &dx, &ids)
	d.later(func() { d.cpu.EmbeddingGrad(dtable, dx, ids) })
}

// CrossEntropy implements device.Device.
func (d *Device) CrossEntropy(loss, dlogits, logits, targets *tensor.Tensor, o device.LossOptions) {
	d.take(&loss, &dlogits, &logits, &targets, &o.LogZ)
	d.later(func() { d.cpu.CrossEntropy(loss, dlogits, logits, targets, o) })
}

// Softcap implements device.Device.
func (d *Device) Softcap(x *tensor.Tensor, limit float64) {
	d.take(&x)
	d.later(func() { d.cpu.Softcap(x, limit) })
}

// MaxAbs implements device.Device.
func (d *Device) MaxAbs(t *tensor.Tensor) float64 {
	d.take(&t)
	return d.number(func() float64 { return d.cpu.MaxAbs(t) })
}

// Quantize implements device.Device.
func (d *Device) Quantize(dst, src *tensor.Tensor, format tensor.DType, scale float64) {
	d.take(&dst, &src)
	d.later(func() { d.cpu.Quantize(dst, src, format, scale) })
}

// Dropout implements device.Device.
func (d *Device) Dropout(dst, src *tensor.Tensor, o device.Dropout) {
	d.take(&dst, &src)
	d.later(func() { d.cpu.Dropout(dst, src, o) })
}

// RoundStochastic implements device.Device.
func (d *Device) RoundStochastic(dst, src *tensor.Tensor, rng tensor.RNG, first uint64) {
	d.take(&dst, &src)
	d.later(func() { d.cpu.RoundStochastic(dst, src, rng, first) })
}

// SquareSums implements device.Device.
func (d *Device) SquareSums(sums []float64, list ...*tensor.Tensor) {
	list = slices.Clone(list)
	for i := range list {
		d.take(&list[i])
	}
	d.number(func() float64 { d.cpu.SquareSums(sums, list...); return 0 })
}

// SumRows implements device.Device.
func (d *Device) SumRows(dst, x *tensor.Tensor) {
	d.take(&dst, &x)
	d.later(func() { d.cpu.SumRows(dst, x) })
}

// Sum implements device.Device.
func (d *Device) Sum(t *tensor.Tensor) float64 {
	d.take(&t)
	return d.number(func() float64 { return d.cpu.Sum(t) })
}

// Copy implements device.Device.
func (d *Device) Copy(dst, src *tensor.Tensor) {
	d.take(&dst, &src)
	d.later(func() { d.cpu.Copy(dst, src) })
}

// Add implements device.Device.
func (d *Device) Add(dst, src *tensor.Tensor) {
	d.take(&dst, &src)
	d.later(func() { d.cpu.Add(dst, src) })
}

// Scale implements device.Device.
func (d *Device) Scale(t *tensor.Tensor, factor float64) {
	d.take(&t)
	d.later(func() { d.cpu.Scale(t, factor) })
}

// Zero implements device.Device.
func (d *Device) Zero(t *tensor.Tensor) {
	d.take(&t)
	d.later(func() { d.cpu.Zero(t) })
}

// Combine implements device.Device.
func (d *Device) Combine(dst, x, y *tensor.Tensor, c device.Combination) {
	d.take(&dst, &x, &y)
	d.later(func() { d.cpu.Combine(dst, x, y, c) })
}

// AdamW implements device.Device.
func (d *Device) AdamW(p, g, m, v *tensor.Tensor, o device.AdamW) {
	d.take(&p, &g, &m, &v)
	d.later(func() { d.cpu.AdamW(p, g, m, v, o) })
}

// AdamW8 implements device.Device.
func (d *Device) AdamW8(p, g, m, mTop, v, vTop *tensor.Tensor, o device.AdamW) {
	d.take(&p, &g, &m, &mTop, &v, &vTop)
	d.later(func() { d.cpu.AdamW8(p, g, m, mTop, v, vTop, o) })
}

// Momentum implements device.Device.
func (d *Device) Momentum(p, g, m *tensor.Tensor, o device.Momentum) {
	d.take(&p, &g, &m)
	d.later(func() { d.cpu.Momentum(p, g, m, o) })
}

// Lion implements device.Device.
func (d *Device) Lion(p, g, m *tensor.Tensor, o device.Lion) {
	d.take(&p, &g, &m)
	d.later(func() { d.cpu.Lion(p, g, m, o) })
}

// AdEMAMix implements device.Device.
func (d *Device) AdEMAMix(p, g, m1, m2, v *tensor.Tensor, o device.AdEMAMix) {
	d.take(&p, &g, &m1, &m2, &v)
	d.later(func() { d.cpu.AdEMAMix(p, g, m1, m2, v, o) })
}

// Adafactor implements device.Device.
func (d *Device) Adafactor(p, g, m, v, c *tensor.Tensor, o device.Adafactor) {
	d.take(&p, &g, &m, &v, &c)
	d.later(func() { d.cpu.Adafactor(p, g, m, v, c, o) })
}

// Sophia implements device.Device.
func (d *Device) Sophia(p, g, m, h *tensor.Tensor, o device.Sophia) int {
	d.take(&p, &g, &m, &h)
	return int(d.number(func() float64 { return float64(d.cpu.Sophia(p, g, m, h, o)) }))
}

// MeanSquare implements device.Device.
func (d *Device) MeanSquare(h, g *tensor.Tensor, beta, weight float64) {
	d.take(&h, &g)
	d.later(func() { d.cpu.MeanSquare(h, g, beta, weight) })
}

// EqualiseRows implements device.Device.
func (d *Device) EqualiseRows(u, v *tensor.Tensor, beta float64) {
	d.take(&u, &v)
	d.later(func() { d.cpu.EqualiseRows(u, v, beta) })
}

// Descend implements device.Device.
func (d *Device) Descend(p, u *tensor.Tensor, o device.Descend) {
	d.take(&p, &u)
	d.later(func() { d.cpu.Descend(p, u, o) })
}
