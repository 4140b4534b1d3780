package cpu

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

func referenceDevice(t *testing.T) *Device {
	d := NewTier(isa.Generic, 1)
	t.Cleanup(d.Close)
	return d
}

func dotOf(a, b *tensor.Tensor) float64 {
	s := 0.0
	for i, x := range a.F64() {
		s += x * b.F64()[i]
	}
	return s
}

// differences compares the gradients of loss with central differences, element by element.
func differences(t *testing.T, loss func() float64, inputs, grads []*tensor.Tensor) {
	t.Helper()
	const step = 1e-5
	for k, x := range inputs {
		for i := range x.Len() {
			v := x.Float64(i)
			x.SetFloat64(i, v+step)
			up := loss()
			x.SetFloat64(i, v-step)
			down := loss()
			x.SetFloat64(i, v)
			want := (up - down) / (2 * step)
			if got := grads[k].Float64(i); !(math.Abs(got-want) <= 1e-7*(1+math.Abs(want))) {
				t.Errorf("input %d, element %d: gradient %v, central difference %v", k, i, got, want)
			}
		}
	}
}

func TestRMSNormGradMatchesFiniteDifferences(t *testing.T) {
	const rows, cols, eps = 3, 7, 1e-3
	d := referenceDevice(t)
	x, gain, dy := gaussian(1, tensor.F64, rows, cols), gaussian(2, tensor.F64, cols),
		gaussian(3, tensor.F64, rows, cols)
	y, xhat, rstd := empty(tensor.F64, rows, cols), empty(tensor.F64, rows, cols), empty(tensor.F64, rows)
	loss := func() float64 { d.RMSNorm(y, xhat, rstd, x, gain, eps); return dotOf(y, dy) }
	loss()
	dx, dgain := empty(tensor.F64, rows, cols), empty(tensor.F64, cols)
	d.RMSNormGrad(dx, dgain, dy, xhat, rstd, gain)
	differences(t, loss, []*tensor.Tensor{x, gain}, []*tensor.Tensor{dx, dgain})
	once := append([]float64(nil), dx.F64()...)
	d.RMSNormGrad(dx, dgain, dy, xhat, rstd, gain)
	for i, g := range dx.F64() {
		if g != 2*once[i] {
			t.Fatalf("element %d: a second call gives %v after %v, want the gradient added", i, g, once[i])
		}
	}
}

func TestQKNormGradMatchesFiniteDifferences(t *testing.T) {
	heads := device.Heads{Q: 2, KV: 1, Size: 4}
	const rows, eps = 3, 1e-3
	d := referenceDevice(t)
	x, dy := gaussian(1, tensor.F64, rows, heads.Cols()), gaussian(2, tensor.F64, rows, heads.Cols())
	gq, gk := gaussian(3, tensor.F64, heads.Size), gaussian(4, tensor.F64, heads.Size)
	y, xhat, rstd := empty(tensor.F64, rows, heads.Cols()), empty(tensor.F64, rows, 12), empty(tensor.F64, rows, 3)
	loss := func() float64 {
		copy(y.F64(), x.F64())
		d.QKNorm(y, xhat, rstd, gq, gk, heads, eps)
		return dotOf(y, dy)
	}
	loss()
	for r := range rows { // the values are not changed
		for c := 12; c < heads.Cols(); c++ {
			if i := r*heads.Cols() + c; y.F64()[i] != x.F64()[i] {
				t.Fatalf("element %d of the values changed from %v to %v", i, x.F64()[i], y.F64()[i])
			}
		}
	}
	dx := empty(tensor.F64, rows, heads.Cols())
	copy(dx.F64(), dy.F64())
	dgq, dgk := empty(tensor.F64, heads.Size), empty(tensor.F64, heads.Size)
	d.QKNormGrad(dx, dgq, dgk, xhat, rstd, gq, gk, heads)
	differences(t, loss, []*tensor.Tensor{x, gq, gk}, []*tensor.Tensor{dx, dgq, dgk})
}

func TestSwiGLUGradMatchesFiniteDifferences(t *testing.T) {
	const rows, cols = 3, 5
	d := referenceDevice(t)
	gu, dact := gaussian(1, tensor.F64, rows, 2*cols), gaussian(2, tensor.F64, rows, cols)
	act, dgu := empty(tensor.F64, rows, cols), empty(tensor.F64, rows, 2*cols)
	d.SwiGLUGrad(dgu, nil, dact, gu)
	differences(t, func() float64 { d.SwiGLU(act, gu); return dotOf(act, dact) }, []*tensor.Tensor{gu},
		[]*tensor.Tensor{dgu})
}

func TestGeGLUGradMatchesFiniteDifferences(t *testing.T) {
	const rows, cols = 3, 5
	d := referenceDevice(t)
	gu, dact := gaussian(1, tensor.F64, rows, 2*cols), gaussian(2, tensor.F64, rows, cols)
	act, dgu := empty(tensor.F64, rows, cols), empty(tensor.F64, rows, 2*cols)
	d.GeGLUGrad(dgu, nil, dact, gu)
	differences(t, func() float64 { d.GeGLU(act, gu); return dotOf(act, dact) }, []*tensor.Tensor{gu},
		[]*tensor.Tensor{dgu})
}

func TestCrossEntropyGradMatchesFiniteDifferences(t *testing.T) {
	const rows, cols = 4, 9
	d := referenceDevice(t)
	logits, targets := gaussian(1, tensor.F64, rows, cols), tensor.Of([]int32{3, device.Ignored, 0, 8})
	loss, dlogits := empty(tensor.F64, rows), empty(tensor.F64, rows, cols)
	d.CrossEntropy(loss, dlogits, logits, targets, device.LossOptions{})
	total := func() float64 { d.CrossEntropy(loss, nil, logits, targets, device.LossOptions{}); return d.Sum(loss) }
	differences(t, total, []*tensor.Tensor{logits}, []*tensor.Tensor{dlogits})
}

func TestEmbeddingGradMatchesFiniteDifferences(t *testing.T) {
	d := referenceDevice(t)
	table, ids, dx := gaussian(1, tensor.F64, 5, 3), tensor.Of([]int32{4, 1, 4, 0}), gaussian(2, tensor.F64, 4, 3)
	x, dtable := empty(tensor.F64, 4, 3), empty(tensor.F64, 5, 3)
	d.EmbeddingGrad(dtable, dx, ids)
	differences(t, func() float64 { d.Embedding(x, table, ids); return dotOf(x, dx) }, []*tensor.Tensor{table},
		[]*tensor.Tensor{dtable})
}
