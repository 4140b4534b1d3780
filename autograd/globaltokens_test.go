package autograd

import (
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// The first tokens of each row get Longformer's global attention by its formula, token by token: keys and values of
// the global projections of the tokens before them in their document. All other tokens keep what they had, and the
// gradient of what was replaced is zero.
func TestGlobalTokensSeeEachOtherThroughTheirOwnProjections(t *testing.T) {
	const rows, length, global, width, size = 2, 7, 4, 5, 3
	h := device.Heads{Q: 4, KV: 2, Size: size}
	const n = rows * length
	x, w, before, dy := normals(1, n*width), normals(2, h.Cols()*width), normals(3, n*h.Q*size), normals(4, n*h.Q*size)
	start := make([]int32, n)
	for i := 2; i < length; i++ { // the second row has a second document from token 2 on
		start[length+i] = 2
	}
	slopes := []float64{0.5, 0.25, 0.125, 0.0625}
	r := newRig(t)
	weight := &Param{Value: *tensor.Of(slices.Clone(w), h.Cols(), width), Grad: *tensor.Of(make([]float64, len(w)),
		h.Cols(), width)}
	g := &GlobalTokens{N: global, Weight: weight, Heads: h, Slopes: slopes}
	seq := &Sequence{Mask: device.Mask{Len: length, Start: tensor.Of(start)}, Pos: *tensor.Of(make([]int32, n))}
	in, y := r.leaf(x, n, width), r.leaf(before, n, h.Q*size)
	out := r.GlobalAttention(y, r.GlobalHeads(in, g, seq), g, seq)
	got := slices.Clone(out.Value.F64())

	// naive returns what the formula gives for inputs x and weights w.
	naive := func(x, w []float64) []float64 {
		want := slices.Clone(before)
		project := func(token, col int) (s float64) {
			for i := range width {
				s += x[token*width+i] * w[col*width+i]
			}
			return s
		}
		for row := range rows {
			for i := range global {
				for head := range h.Q {
					kv, at := head*h.KV/h.Q, row*length+i
					sum, result := 0.0, make([]float64, size)
					for j := int(start[at]); j <= i; j++ {
						score := 0.0
						for e := range size {
							score += project(at, head*size+e) * project(row*length+j, (h.Q+kv)*size+e)
						}
						p := math.Exp(score/math.Sqrt(size) - slopes[head]*float64(i-j))
						sum += p
						for e := range size {
							result[e] += p * project(row*length+j, (h.Q+h.KV+kv)*size+e)
						}
					}
					for e := range size {
						want[(at*h.Q+head)*size+e] = result[e] / sum
					}
				}
			}
		}
		return want
	}
	near(t, "out", got, naive(x, w), 1e-13)

	r.backward(out, dy)
	loss := func(x, w []float64) (s float64) {
		for i, v := range naive(x, w) {
			s += v * dy[i]
		}
		return s
	}
	differences := func(of []float64, f func([]float64) float64) []float64 {
		d, moved := make([]float64, len(of)), slices.Clone(of)
		for i := range of {
			moved[i] = of[i] + 1e-5
			up := f(moved)
			moved[i] = of[i] - 1e-5
			d[i] = (up - f(moved)) / 2e-5
			moved[i] = of[i]
		}
		return d
	}
	near(t, "the gradient of h", in.grad.F64(), differences(x, func(x []float64) float64 { return loss(x, w) }), 1e-8)
	near(t, "the gradient of the weights", weight.Grad.F64(),
		differences(w, func(w []float64) float64 { return loss(x, w) }), 1e-8)
	for row := range rows {
		clear(dy[row*length*h.Q*size : (row*length+global)*h.Q*size])
	}
	near(t, "the gradient of what was there before", y.grad.F64(), dy, 0)
}
