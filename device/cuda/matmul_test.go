//go:build cuda && linux

package cuda

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/device/cuda/cublaslt"
	"anneal/tensor"
)

// FP8 numbers multiplied in FP8 give the same products as the same numbers in BF16, in every form, with sums in FP32.
func TestFP8ProductsAreThoseOfTheSameNumbers(t *testing.T) {
	d := newEmulated(t)
	memory, err := d.NewShared("test", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	codes := func(format tensor.DType, seed uint64, rows, cols int) *tensor.Tensor {
		x := memory.New(tensor.BF16, rows, cols)
		rng := tensor.NewRNG(seed, tensor.PurposeInit, 0)
		for i := range x.Len() {
			v := tensor.E4M3(rng.Uint32(uint64(i)) & 0xff).Float32()
			if format == tensor.F8E5M2 {
				v = tensor.E5M2(rng.Uint32(uint64(i)) & 0xff).Float32()
			}
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				v = 0
			}
			x.SetFloat64(i, float64(v))
		}
		return &x
	}
	const m, n, k = 48, 80, 112
	shapes := map[device.Form][4]int{device.NN: {m, k, k, n}, device.NT: {m, k, n, k}, device.TN: {k, m, k, n}}
	for form, s := range shapes {
		for _, format := range []tensor.DType{tensor.F8E4M3, tensor.F8E5M2} {
			for _, to := range []tensor.DType{tensor.F32, tensor.BF16} {
				a, b := codes(format, 1, s[0], s[1]), codes(tensor.F8E4M3, 2, s[2], s[3])
				want, got := memory.New(to, m, n), memory.New(to, m, n)
				opt := device.MatMulOptions{Operand: tensor.BF16, Scale: 0.125}
				d.MatMul(&want, a, b, form, opt)
				opt.FP8 = [2]tensor.DType{format, tensor.F8E4M3}
				d.MatMul(&got, a, b, form, opt)
				if err := d.Wait(); err != nil {
					t.Fatal(err)
				}
				far, top := 0.0, 0.0
				for i := range got.Len() {
					far = max(far, math.Abs(got.Float64(i)-want.Float64(i)))
					top = max(top, math.Abs(want.Float64(i)))
				}
				if limit := map[tensor.DType]float64{tensor.F32: 1e-5, tensor.BF16: 0x1p-7}[to]; !(far <= limit*top) ||
					top == 0 {
					t.Errorf("%v of %v to %v: off by %g of %g", form, format, to, far, top)
				}
			}
		}
	}
	planned := 0
	for p, plan := range d.plans {
		if plan != nil && (p.B == cublaslt.E4M3 || p.B == cublaslt.E5M2) {
			planned++
		}
	}
	if planned != 4 { // all forms become the library's one form: two formats times two results
		t.Errorf("%d plans are of FP8, want 4", planned)
	}
}
