package attention

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/tensor"
)

// dense is attention of one head by the definition of a pattern, token by token: the softmax over all keys of the
// document, each as often as the query sees it, and the gradients of Σ out·dout by q, k and v.
func dense(visible func(i, j int) int, q, k, v, dout [][]float64, start []int32,
	scale float64) (out, dq, dk, dv [][]float64) {
	zeros := func() [][]float64 {
		x := make([][]float64, len(q))
		for i := range x {
			x[i] = make([]float64, len(q[0]))
		}
		return x
	}
	dot := func(a, b []float64) (s float64) {
		for i := range a {
			s += a[i] * b[i]
		}
		return s
	}
	add := func(y []float64, f float64, x []float64) {
		for i := range y {
			y[i] += f * x[i]
		}
	}
	out, dq, dk, dv = zeros(), zeros(), zeros(), zeros()
	for i := range q {
		weight, sum := make([]float64, i+1), 0.0
		for j := int(start[i]); j <= i; j++ {
			weight[j] = float64(visible(i, j)) * math.Exp(scale*dot(q[i], k[j]))
			sum += weight[j]
		}
		for j := range weight {
			weight[j] /= sum
			add(out[i], weight[j], v[j])
		}
		for j, w := range weight {
			ds := scale * w * (dot(dout[i], v[j]) - dot(dout[i], out[i]))
			add(dv[j], w, dout[i])
			add(dq[i], ds, k[j])
			add(dk[j], ds, q[i])
		}
	}
	return out, dq, dk, dv
}

// A compiled pattern, run by a device, is the softmax over what its definition sees, forward and backward: with
// documents, with heads that share keys, and in rows shorter than those it was compiled for.
func TestDeviceRunsTheDefinition(t *testing.T) {
	d := cpu.NewTier(isa.Generic, 1)
	t.Cleanup(d.Close)
	rapid.Check(t, func(t *rapid.T) {
		p := anyPattern(t)
		compiled := rapid.IntRange(1, 180).Draw(t, "compiled for")
		length := rapid.IntRange(1, compiled).Draw(t, "length")
		layer := rapid.IntRange(0, 2).Draw(t, "layer")
		heads := device.Heads{
			Q: 4, KV: rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "kv"), Size: rapid.IntRange(1, 5).Draw(t, "size"),
		}
		random := tensor.NewRNG(rapid.Uint64().Draw(t, "seed"), tensor.PurposeData, 0)
		l, err := Compile(p, compiled, heads.Q, layer)
		if err != nil {
			t.Fatal(err)
		}
		const rows = 2
		n, width := rows*length, heads.Q*heads.Size
		normal := func(cols, stream int) *tensor.Tensor {
			x := make([]float64, n*cols)
			for i := range x {
				x[i] = random.Normals(uint64(i))[stream]
			}
			return tensor.Of(x, n, cols)
		}
		start := make([]int32, n)
		for i := range start {
			switch at := i % length; {
			case at == 0: // a row begins a document
			case random.Uint32(uint64(i))%16 == 0:
				start[i] = int32(at)
			default:
				start[i] = start[i-1]
			}
		}
		qkv, dout := normal(heads.Cols(), 0), normal(width, 1)
		out, lse, dqkv := normal(width, 2), tensor.Of(make([]float64, heads.Q*n), heads.Q, n), normal(heads.Cols(), 3)
		mask := device.Mask{Len: length, Start: tensor.Of(start, n), Layout: l}
		d.Attention(out, lse, qkv, heads, mask)
		d.AttentionGrad(dqkv, dout, out, lse, qkv, heads, mask)

		want := make([]float64, len(dqkv.F64()))
		for row := range rows {
			part := func(x *tensor.Tensor, head int) [][]float64 { // columns of a head in the row
				list := make([][]float64, length)
				for i := range list {
					list[i] = x.F64()[(row*length+i)*x.Cols()+head*heads.Size:][:heads.Size]
				}
				return list
			}
			for h := range heads.Q {
				kv := h * heads.KV / heads.Q
				visible := func(i, j int) int { return sees(p, i, j, h, heads.Q, layer) }
				o, dq, dk, dv := dense(visible, part(qkv, h), part(qkv, heads.Q+kv), part(qkv, heads.Q+heads.KV+kv),
					part(dout, h), start[row*length:], 1/math.Sqrt(float64(heads.Size)))
				for i, got := range part(out, h) {
					for e := range got {
						if math.Abs(got[e]-o[i][e]) > 1e-12*(1+math.Abs(o[i][e])) {
							t.Fatalf("%s compiled for %d, row %d of %d tokens, head %d: query %d gives %v, "+
								"its definition %v", p, compiled, row, length, h, i, got, o[i])
						}
						at := (row*length + i) * heads.Cols()
						want[at+h*heads.Size+e] += dq[i][e]
						want[at+(heads.Q+kv)*heads.Size+e] += dk[i][e]
						want[at+(heads.Q+heads.KV+kv)*heads.Size+e] += dv[i][e]
					}
				}
			}
		}
		for i, got := range dqkv.F64() {
			if math.Abs(got-want[i]) > 1e-11*(1+math.Abs(want[i])) {
				t.Fatalf("%s compiled for %d, rows of %d tokens: gradient %d is %v, of its definition %v",
					p, compiled, length, i, got, want[i])
			}
		}
	})
}
