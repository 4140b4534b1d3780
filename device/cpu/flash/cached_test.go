package flash

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/internal/isa"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// However a sequence is split, and with the smallest possible cache, each query gets the same bits as in the whole
// sequence. The cache is filled with NaN first, to show that only written rows are read.
func TestCachedAttentionEqualsAttention(t *testing.T) {
	for _, tier := range isa.Tiers() {
		e := newEngine(t, tier, 2)
		storage := map[isa.Tier][]tensor.DType{
			isa.Generic: {tensor.F64}, isa.AVX2: {tensor.F32, tensor.F16}, isa.NEON: {tensor.F32, tensor.F16},
		}[tier]
		if storage == nil {
			storage = []tensor.DType{tensor.BF16, tensor.F32}
		}
		for _, dt := range storage {
			t.Run(fmt.Sprintf("%v/%v", tier, dt), rapid.MakeCheck(func(t *rapid.T) {
				length := rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(60, 250)).Draw(t, "T")
				kv := rapid.IntRange(1, 2).Draw(t, "K")
				heads := device.Heads{
					Q: kv * rapid.IntRange(1, 5).Draw(t, "H/K"), KV: kv,
					Size: rapid.SampledFrom([]int{1, 5, 16, 32, 63, 64}).Draw(t, "E"),
				}
				p := newProblem(dt, 1, length, heads, nil, rapid.Uint64Range(0, 99).Draw(t, "seed"))
				p.mask.Layout = conformance.DrawLayout(t, length, heads.Q)
				if keys := rapid.IntRange(0, 100).Draw(t, "window"); keys > 0 {
					p.mask.Layout = window(keys, length)
				}
				if rapid.Bool().Draw(t, "ALiBi") {
					p.mask.Slopes = make([]float64, heads.Q)
					for h := range p.mask.Slopes {
						p.mask.Slopes[h] = math.Exp2(-float64(h + 1))
					}
				}
				e.Forward(p.out, p.lse, p.qkv, p.heads, p.mask)

				reach := p.mask.Layout.Reach()
				cache := device.Cache{KV: *zeros(dt, device.CacheRows(length, reach), 2*kv*heads.Size), Reach: reach}
				for i := range cache.KV.Len() {
					cache.KV.SetFloat64(i, math.NaN())
				}
				out := zeros(dt, length, heads.Q*heads.Size)
				mask := device.Mask{Layout: p.mask.Layout, Slopes: p.mask.Slopes}
				for first := 0; first < length; {
					n := min(rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(1, 200)).Draw(t, "tokens"), length-first)
					to, qkv := out.Slice(first, first+n), p.qkv.Slice(first, first+n)
					e.ForwardCached(&to, &qkv, &cache, first, heads, mask)
					if want := p.out.Slice(first, first+n); !bytes.Equal(to.Raw(), want.Raw()) {
						t.Fatalf("%v %+v: tokens %d to %d of %d, cache of %d rows: other bits than in the "+
							"whole sequence", dt, heads, first, first+n, length, cache.KV.Rows())
					}
					first += n
				}
			}))
		}
	}
}

// A window of W keys needs a cache of W+63 rows, however long the sequence.
func TestCacheOfAWindowIsARing(t *testing.T) {
	for _, c := range []struct{ keys, length, want int }{
		{1, 5000, 64}, {100, 5000, 163}, {100, 120, 120}, {5000, 5000, 5000},
	} {
		if got := device.CacheRows(c.length, window(c.keys, c.length).Reach()); got != c.want {
			t.Errorf("a window of %d in sequences of %d: %d rows, want %d", c.keys, c.length, got, c.want)
		}
	}
	if got := device.CacheRows(700, (*device.Layout)(nil).Reach()); got != 700 {
		t.Errorf("full attention over 700 tokens: %d rows", got)
	}
}
