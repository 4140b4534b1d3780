package cpu

import (
	"fmt"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// BenchmarkKernels reports bytes per second at the sizes of a model of 98M parameters. It counts the bytes that a
// kernel must move at least, every operand once. Compare with Copy, which does nothing else.
func BenchmarkKernels(b *testing.B) {
	const rows, cols, inner, vocabulary, shard = 2048, 768, 2048, 32000, 8 << 20
	heads := device.Heads{Q: 12, KV: 12, Size: 64}
	pairs := device.Heads{Q: 12, KV: 12, Size: 64, Interleaved: true}
	f32, bf16 := tensor.F32, tensor.BF16
	x, dx, gain, rstd := gaussian(1, f32, rows, cols), zeros(f32, rows, cols), gaussian(2, f32, cols), empty(f32, rows)
	y, xhat, dgain := zeros(bf16, rows, cols), gaussian(3, bf16, rows, cols), empty(f32, cols)
	qkv, pos := gaussian(4, bf16, rows, heads.Cols()), ints(5, rows, 1024)
	cos, sin := angles(f32, 1024, heads.Size)
	gu, dgu, act := gaussian(6, bf16, rows, 2*inner), zeros(bf16, rows, 2*inner), gaussian(7, bf16, rows, inner)
	table, ids := zeros(f32, vocabulary, cols), ints(8, rows, vocabulary)
	logits, targets, loss := zeros(f32, 256, vocabulary), ints(9, 256, vocabulary), empty(f32, 256)
	p, g, m, v, narrow := zeros(f32, shard), zeros(f32, shard), zeros(f32, shard), zeros(f32, shard), zeros(bf16, shard)
	codes, scales := empty(tensor.U8, shard), empty(f32, shard/device.Block)
	for _, c := range []struct {
		name  string
		bytes int
		run   func(d *Device)
	}{
		{"Copy", 2 * p.Bytes(), func(d *Device) { d.Copy(p, g) }},
		{"Zero", p.Bytes(), func(d *Device) { d.Zero(p) }},
		{"CopyToBF16", p.Bytes() + narrow.Bytes(), func(d *Device) { d.Copy(narrow, p) }},
		{"Add", 3 * p.Bytes(), func(d *Device) { d.Add(p, g) }},
		{"AddBF16", 2*p.Bytes() + narrow.Bytes(), func(d *Device) { d.Add(p, narrow) }},
		{"Fold2", 3 * p.Bytes(), func(d *Device) { d.Fold(p, []*tensor.Tensor{g, m}, false) }},
		{"Fold4", 5 * p.Bytes(), func(d *Device) { d.Fold(p, []*tensor.Tensor{g, m, v, p}, false) }},
		{"FoldBF16", 3*narrow.Bytes() + 2*p.Bytes(), func(d *Device) {
			d.Fold(p, []*tensor.Tensor{narrow, narrow, narrow}, true)
		}},
		{"SumSquares", p.Bytes(), func(d *Device) { new(device.Squares).Sum(d, p) }},
		{"MaxAbs", p.Bytes(), func(d *Device) { d.MaxAbs(p) }},
		{"Quantize", p.Bytes() + narrow.Bytes(), func(d *Device) { d.Quantize(narrow, p, tensor.F8E4M3, 3) }},
		{"RoundStochastic", p.Bytes() + narrow.Bytes(), func(d *Device) {
			d.RoundStochastic(narrow, p, tensor.NewRNG(1, tensor.PurposeRound, 1), 0)
		}},
		{"EncodeInt8", p.Bytes() + codes.Bytes(), func(d *Device) {
			d.EncodeInt8(codes, scales, g, tensor.NewRNG(1, tensor.PurposeWire, 1), 0)
		}},
		{"DecodeInt8", p.Bytes() + codes.Bytes(), func(d *Device) { d.DecodeInt8(p, codes, scales) }},
		{"AdamW", 7 * p.Bytes(), func(d *Device) {
			d.AdamW(p, g, m, v, device.AdamW{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Scale: 0.5,
				Correct1: 10, Correct2: 20})
		}},
		{"RMSNorm", x.Bytes() + 2*y.Bytes(), func(d *Device) { d.RMSNorm(y, xhat, rstd, x, gain, 1e-5) }},
		{"RMSNormAgain", 2 * y.Bytes(), func(d *Device) { d.RMSNormAgain(y, xhat, gain) }},
		{"RMSNormGrad", 2*dx.Bytes() + 2*y.Bytes(), func(d *Device) { d.RMSNormGrad(dx, dgain, y, xhat, rstd, gain) }},
		{"LayerNorm", x.Bytes() + 2*y.Bytes(), func(d *Device) { d.LayerNorm(y, xhat, rstd, x, gain, gain, 1e-5) }},
		{"LayerNormAgain", 2 * y.Bytes(), func(d *Device) { d.LayerNormAgain(y, xhat, gain, gain) }},
		{"LayerNormGrad", 2*dx.Bytes() + 2*y.Bytes(),
			func(d *Device) { d.LayerNormGrad(dx, dgain, dgain, y, xhat, rstd, gain) }},
		{"RoPE", 2 * qkv.Bytes() * 2 / 3, func(d *Device) { d.RoPE(qkv, cos, sin, pos, heads, false) }},
		{"RoPEInterleaved", 2 * qkv.Bytes() * 2 / 3, func(d *Device) { d.RoPE(qkv, cos, sin, pos, pairs, false) }},
		{"SwiGLU", gu.Bytes() + act.Bytes(), func(d *Device) { d.SwiGLU(act, gu) }},
		{"SwiGLUGrad", 2*gu.Bytes() + act.Bytes(), func(d *Device) { d.SwiGLUGrad(dgu, act, act, gu) }},
		{"GELU", 2 * gu.Bytes(), func(d *Device) { d.GELU(dgu, gu) }},
		{"GELUGrad", 3 * gu.Bytes(), func(d *Device) { d.GELUGrad(dgu, nil, gu, gu) }},
		{"SumRows", y.Bytes(), func(d *Device) { d.SumRows(dgain, y) }},
		{"SumRowsF32", x.Bytes(), func(d *Device) { d.SumRows(dgain, x) }},
		{"Embedding", 2 * x.Bytes(), func(d *Device) { d.Embedding(x, table, ids) }},
		{"EmbeddingGrad", 3 * x.Bytes(), func(d *Device) { d.EmbeddingGrad(table, x, ids) }},
		{"CrossEntropy", 2 * logits.Bytes(),
			func(d *Device) { d.CrossEntropy(loss, logits, logits, targets, device.LossOptions{}) }},
		{"CrossEntropyZLoss", 2 * logits.Bytes(), func(d *Device) {
			d.CrossEntropy(loss, logits, logits, targets, device.LossOptions{ZLoss: 1e-4, LogZ: loss})
		}},
		{"CrossEntropySoftcap", 4 * logits.Bytes(), func(d *Device) {
			d.Softcap(logits, 30)
			d.CrossEntropy(loss, logits, logits, targets, device.LossOptions{Softcap: 30})
		}},
		{"CrossEntropyLoss", logits.Bytes(),
			func(d *Device) { d.CrossEntropy(loss, nil, logits, targets, device.LossOptions{}) }},
	} {
		for _, tier := range isa.Tiers() {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%v/threads=%d", c.name, tier, threads), func(b *testing.B) {
					d := NewTier(tier, threads)
					defer d.Close()
					b.SetBytes(int64(c.bytes))
					for b.Loop() {
						c.run(d)
					}
				})
			}
		}
	}
}

// zeros returns a tensor whose pages have been written; untouched pages would all map to one page of zeros in the
// cache.
func zeros(dtype tensor.DType, shape ...int) *tensor.Tensor {
	t := empty(dtype, shape...)
	clear(t.Raw())
	return t
}
