package flash

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// Full causal attention keeps its bits: the checksums date from before the package supported other patterns.
func TestFullAttentionKeepsItsBits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other compilers fuse multiplications and additions")
	}
	want := map[string]uint64{
		"amx/f32":         0xd8ca7536ba249634,
		"amx/bf16":        0x755a87b3c111b6e2,
		"amx/f64":         0x27cdea95d225d9ef,
		"avx512bf16/f32":  0xd8ca7536ba249634,
		"avx512bf16/bf16": 0x74a501b8d019e100,
		"avx512bf16/f64":  0x27cdea95d225d9ef,
		"avx512/f32":      0xd8ca7536ba249634,
		"avx512/bf16":     0xfffa71922087467d,
		"avx512/f64":      0x27cdea95d225d9ef,
		"avx2/f32":        0x4a0cc68e8d6f69ea,
		"avx2/bf16":       0xe067fcf92648d8be,
		"avx2/f64":        0x27cdea95d225d9ef,
		"generic/f32":     0x75e5abe393b0c36f,
		"generic/bf16":    0x36d4aa74a7758668,
		"generic/f64":     0x27cdea95d225d9ef,
	}
	for _, tier := range isa.Tiers() {
		for _, dt := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F64} {
			h := fnv.New64a()
			for _, c := range []struct {
				rows, length int
				heads        device.Heads
				every        int // tokens per document, 0 for none
			}{
				{2, 37, device.Heads{Q: 2, KV: 1, Size: 48}, 0},
				{1, 300, device.Heads{Q: 1, KV: 1, Size: 64}, 0},
				{1, 200, device.Heads{Q: 4, KV: 2, Size: 64}, 23},
				{2, 131, device.Heads{Q: 6, KV: 1, Size: 13}, 31},
				{1, 333, device.Heads{Q: 3, KV: 3, Size: 24, Scale: 0.3}, 70},
			} {
				var start []int32
				for i := range c.rows * c.length {
					if c.every > 0 {
						start = append(start, int32(i%c.length/c.every*c.every))
					}
				}
				p := newProblem(dt, c.rows, c.length, c.heads, start, 11)
				p.run(newEngine(t, tier, 2))
				h.Write(p.out.Raw())
				h.Write(p.lse.Raw())
				h.Write(p.dqkv.Raw())
			}
			name := fmt.Sprintf("%v/%v", tier, dt)
			if got := h.Sum64(); got != want[name] {
				t.Errorf("%q: %#x, want %#x", name, got, want[name])
			}
		}
	}
}
