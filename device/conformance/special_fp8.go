package conformance

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// probabilitiesAreE4M3: the values of key j are 1 at element j and else 0, so that results are the probabilities: those
// of E4M3, over the sum of the unrounded ones, in the smallest numbers of the format, too. Storage other than BF16
// has none.
func probabilitiesAreE4M3(t *testing.T, d bench, act, _ tensor.DType) {
	if act != tensor.BF16 {
		return
	}
	for _, size := range []int{36, 64, 160} {
		d.memory.Release(0)
		n := min(size, 64) // one tile of keys: probabilities are rounded once the largest score is known
		heads, mask := device.Heads{Q: 1, KV: 1, Size: size, Scale: 1, FP8: true}, device.Mask{Len: n}
		x, p, sum := make([]float64, n*3*size), make([]float64, n), 0.0
		for j := range n {
			score := -float64(j*37%n) * 13 / float64(n) // down to 2⁻¹⁸
			score = float64(tensor.BF16FromFloat32(float32(score)).Float32())
			x[j*3*size], x[j*3*size+size], x[j*3*size+2*size+j] = 1, score, 1
			p[j] = math.Exp(score)
			sum += p[j]
		}
		out, lse := d.of(act, make([]float64, n*size), n, size), d.of(tensor.F32, make([]float64, n), 1, n)
		d.Attention(out, lse, d.of(act, x, n, 3*size), heads, mask)
		d.wait(t)
		if got := lse.Float64(n - 1); !(math.Abs(got-math.Log(sum)) <= 1e-5) {
			t.Errorf("heads of %d: the log-sum-exp is %v, want %v: probabilities are rounded", size, got, math.Log(sum))
		}
		for j := range n {
			rounded := float64(tensor.E4M3FromFloat32(float32(256*p[j])).Float32()) / 256
			if got, want := out.Float64((n-1)*size+j), rounded/sum; !(math.Abs(got-want) <= want/200) {
				t.Errorf("heads of %d: probability %v becomes %v, want %v", size, p[j], got*sum, rounded)
			}
		}
	}
}

// notFiniteBlocks checks that a number that is not finite turns all of its block into NaN, and no other block.
func notFiniteBlocks(t *testing.T, d bench, act, _ tensor.DType) {
	if act == tensor.F64 {
		return
	}
	for _, bad := range []float64{nan, inf, -inf} {
		d.memory.Release(0)
		x := normal(6*40, 8)
		x[3*40+37] = bad
		got := d.of(tensor.BF16, make([]float64, len(x)), 6, 40)
		d.QuantizeBlocks(got, d.of(act, x, 6, 40), 2, 32)
		d.wait(t)
		for i := range x {
			in := i/40/2 == 1 && i%40 >= 32
			if v := got.Float64(i); math.IsNaN(v) != in {
				t.Fatalf("%v: %v in a block, and number %d, in it: %v, becomes %v", act, bad, i, in, v)
			}
		}
	}
}
