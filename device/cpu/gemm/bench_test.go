package gemm

import (
	"fmt"
	"testing"
	"time"

	"anneal/device/cpu/isa"
	"anneal/device/cpu/pool"
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
