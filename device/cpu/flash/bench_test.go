package flash

import (
	"fmt"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// BenchmarkAttention reports useful GFLOP/s on one thread: half of the square of scores, two products forward and four
// backward, so that the fifth product of the backward pass and the exponentials count as overhead.
func BenchmarkAttention(b *testing.B) {
	heads := device.Heads{Q: 6, KV: 6, Size: 64}
	for _, tier := range isa.Tiers() {
		for _, length := range []int{256, 512, 2048} {
			b.Run(fmt.Sprintf("%v/T%d", tier, length), func(b *testing.B) {
				e := newEngine(b, tier, 1)
				p := newProblem(tensor.BF16, 1, length, heads, nil, 1)
				p.run(e)
				product := float64(heads.Q*length*length*heads.Size) / 1e9
				b.Run("forward", func(b *testing.B) {
					for b.Loop() {
						e.Forward(p.out, p.lse, p.qkv, p.heads, p.mask)
					}
					b.ReportMetric(2*product*float64(b.N)/b.Elapsed().Seconds(), "GFLOP/s")
				})
				b.Run("backward", func(b *testing.B) {
					for b.Loop() {
						e.Backward(p.dqkv, p.dout, p.out, p.lse, p.qkv, p.heads, p.mask)
					}
					b.ReportMetric(4*product*float64(b.N)/b.Elapsed().Seconds(), "GFLOP/s")
				})
			})
		}
	}
}

// BenchmarkLinearAttention reports nanoseconds per token and head, forward and backward, on one thread.
func BenchmarkLinearAttention(b *testing.B) {
	heads := device.Heads{Q: 2, KV: 2, Size: 64}
	for _, tier := range isa.Tiers() {
		for _, kind := range linearKinds {
			heads.Rule = kind.rule
			for _, length := range []int{1 << 10, 1 << 13, 1 << 17} {
				b.Run(fmt.Sprintf("%v/%d/gated=%v/T%d", tier, kind.rule, kind.gated, length), func(b *testing.B) {
					l := newLinear(b, tier, 1)
					p := newLinearProblem(tensor.BF16, 1, length, heads, nil, kind.gated, 1)
					p.run(l)
					unit := float64(heads.Q*length) / 1e9
					b.Run("forward", func(b *testing.B) {
						for b.Loop() {
							l.Forward(p.out, p.norm, p.qkv, p.gates, p.heads, p.mask)
						}
						b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/unit, "ns/token/head")
					})
					b.Run("backward", func(b *testing.B) {
						for b.Loop() {
							l.Backward(p.dqkv, p.dgates, p.dout, p.out, p.norm, p.qkv, p.gates, p.heads, p.mask)
						}
						b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/unit, "ns/token/head")
					})
				})
			}
		}
	}
}
