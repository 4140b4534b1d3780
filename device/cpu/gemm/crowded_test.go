package gemm

import (
	"testing"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/internal/isa"
	"anneal/tensor"
)

// Rows that crowd the first-level cache are packed instead of being read in place. That changes no bit.
func TestCrowdedRowsArePacked(t *testing.T) {
	for _, tier := range isa.Tiers() {
		p := pool.New(2)
		defer p.Close()
		e := New(tier, p)
		defer e.Close()
		for _, dtype := range []tensor.DType{tensor.F32, tensor.BF16} {
			const m, n, k = 48, 64, 2048
			want := newProblem(device.NT, m, n, k, dtype, dtype, tensor.F32, device.MatMulOptions{Operand: dtype}, 1)
			got := newProblem(device.NT, m, n, k, dtype, dtype, tensor.F32, device.MatMulOptions{Operand: dtype}, 1)
			for _, x := range []struct {
				cache isa.Cache
				to    *problem
			}{{isa.Cache{Bytes: 1 << 20, Ways: 64}, want}, {isa.Cache{Bytes: 8 << 10, Ways: 2}, got}} {
				e.fma.first, e.bf16.first = x.cache, x.cache
				e.MatMul(x.to.dst, x.to.a, x.to.b, x.to.form, x.to.opt)
			}
			for i := range want.dst.Len() {
				if want.dst.Float64(i) != got.dst.Float64(i) {
					t.Fatalf("%v, %v: element %d is %v packed, %v in place",
						tier, dtype, i, got.dst.Float64(i), want.dst.Float64(i))
				}
			}
		}
	}
}
