package gemm

import (
	"fmt"
	"testing"
	"time"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/internal/isa"
	"anneal/tensor"
)

// BenchmarkProducts prints GFLOP/s and the share of the measured peak for the products of training:
//
//	go test -bench 'Products/avx512/bf16/1/nt' ./device/cpu/gemm
func BenchmarkProducts(b *testing.B) {
	for _, tier := range isa.Tiers() {
		for _, operand := range []tensor.DType{tensor.BF16, tensor.F32} {
			for _, threads := range []int{1, 2} {
				for _, c := range Cases() {
					b.Run(fmt.Sprintf("%v/%v/%d/%v/%s", tier, operand, threads, c.Form, c.Name), func(b *testing.B) {
						p := pool.New(threads)
						defer p.Close()
						e := New(tier, p)
						defer e.Close()
						peak := Peak(tier, operand, p, 50*time.Millisecond)
						for range b.N {
							rate, err := e.Measure(c, operand, 200*time.Millisecond)
							if err != nil {
								b.Fatal(err)
							}
							b.ReportMetric(rate, "GFLOP/s")
							b.ReportMetric(100*rate/peak, "%peak")
						}
						b.ReportMetric(0, "ns/op")
					})
				}
			}
		}
	}
}

// BenchmarkFewRows prints how fast products of few rows read a matrix in memory, compared with copying it:
//
//	go test -bench FewRows/avx512/f32 ./device/cpu/gemm
func BenchmarkFewRows(b *testing.B) {
	const layers, n, k = 48, 2048, 768
	for _, tier := range isa.Tiers() {
		for _, store := range []tensor.DType{tensor.F32, tensor.BF16} {
			for _, rows := range []int{1, 4, 5, 12} {
				b.Run(fmt.Sprintf("%v/%v/%d", tier, store, rows), func(b *testing.B) {
					e := newEngine(b, tier, 2)
					arena, err := tensor.NewArena("weights", layers*(n*k*store.Size()+tensor.Align))
					if err != nil {
						b.Fatal(err)
					}
					defer arena.Close()
					x, y := empty(tensor.BF16, rows, k), empty(tensor.BF16, rows, n)
					var weights [layers]tensor.Tensor
					for i := range weights {
						weights[i] = arena.New(store, n, k)
						for j := range weights[i].Raw() {
							weights[i].Raw()[j] = byte(j % 7)
						}
					}
					b.SetBytes(layers * n * k * int64(store.Size()))
					for b.Loop() {
						for i := range weights {
							e.MatMul(y, x, &weights[i], device.NT, device.MatMulOptions{Operand: tensor.BF16})
						}
					}
				})
			}
		}
	}
}
