package autograd

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/internal/isa"
	"anneal/tensor"
)

// attendInE4M3 is attention in FP64 with probabilities rounded code by code, over the sums of unrounded ones. Rows have
// one tile of keys, of which the largest score is known before any is rounded.
func attendInE4M3(qkv []float64, n int, h device.Heads) []float64 {
	out := make([]float64, n*h.Q*h.Size)
	at := func(token, head int) []float64 { return qkv[token*h.Cols()+head*h.Size:][:h.Size] }
	dot := func(a, b []float64) (s float64) {
		for i := range a {
			s += a[i] * b[i]
		}
		return s / math.Sqrt(float64(h.Size))
	}
	for i := range n {
		for q := range h.Q {
			kv, top, sum := q*h.KV/h.Q, math.Inf(-1), 0.0
			for j := range i + 1 {
				top = max(top, dot(at(i, q), at(j, h.Q+kv)))
			}
			y := out[(i*h.Q+q)*h.Size:][:h.Size]
			for j := range i + 1 {
				p := math.Exp(dot(at(i, q), at(j, h.Q+kv)) - top)
				sum += p
				p = float64(tensor.E4M3FromFloat32(float32(256*p)).Float32()) / 256
				for e, v := range at(j, h.Q+h.KV+kv) {
					y[e] += p * v
				}
			}
			for e := range y {
				y[e] /= sum
			}
		}
	}
	return out
}

// Attention with FP8 operands is that of queries, keys, values and probabilities rounded number by number, up to FP32
// sums and the rounding of what is stored; an outlier costs other heads and tokens nothing. Its gradients are those of
// exact attention to the rounded heads.
func TestFP8AttentionMatchesScalarEmulation(t *testing.T) {
	const n = 40
	h := device.Heads{Q: 2, KV: 1, Size: 16}
	x, dy := normals(1, n*h.Cols()), normals(2, n*h.Q*h.Size)
	x[3*h.Cols()+h.Q*h.Size+5] = 300
	for _, values := range [][]float64{x, dy} { // what BF16 storage holds
		for i, v := range values {
			values[i] = float64(tensor.BF16FromFloat32(float32(v)).Float32())
		}
	}
	qx := inBlocks(x, n, h.Cols(), 1, h.Size)
	want, mask := attendInE4M3(qx, n, h), device.Mask{Len: n}
	for _, tier := range isa.Tiers() {
		r := newRigOf(t, tier, Types{
			Stream: tensor.BF16, Activation: tensor.BF16, Operand: tensor.BF16, Stat: tensor.F32, FP8Heads: true,
		})
		vx := r.leaf(x, n, h.Cols())
		qkv, heads := r.QuantizeHeads(vx, h)
		y := r.Attention(qkv, heads, mask)
		g, _ := r.gradOf(y)
		out := make([]float64, y.Value.Len())
		for i, v := range dy {
			g.SetFloat64(i, v)
			out[i] = y.Value.Float64(i)
		}
		r.Backward()
		for _, k := range []struct {
			name string
			got  *tensor.Tensor
			want []float64
			near float64 // of the largest number: products of gradients may have BF16 operands
		}{
			{"out", &y.Value, want, 1e-6},
			{"dqkv", &vx.grad, conformance.AttentionGrad(dy, out, qx, h, mask), 1. / 256},
		} {
			top := 0.0
			for _, v := range k.want {
				top = max(top, math.Abs(v))
			}
			for i, v := range k.want {
				if got := k.got.Float64(i); !(math.Abs(got-v) <= math.Abs(v)/256+k.near*top) {
					t.Fatalf("%v: %s[%d] = %v, want %v", tier, k.name, i, got, v)
				}
			}
		}
	}
}
