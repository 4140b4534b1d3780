package conformance

import (
	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// attentionCached takes a sequence in two pieces, with a cache of no more rows than it needs. The results to compare
// are those of attention over the whole sequence, and the final contents of the cache.
func attentionCached(s *scope) call {
	heads := s.scoredHeads()
	mask := s.pattern(1, heads)
	mask.Start = nil
	n, reach := mask.Len, mask.Layout.Reach()
	cache := device.Cache{KV: *s.empty(s.act, device.CacheRows(n, reach), 2*heads.KV*heads.Size), Reach: reach}
	s.buffers[len(s.buffers)-1].t = &cache.KV
	first := rapid.IntRange(0, n-1).Draw(s.T, "first piece")
	qkv, out := s.random(s.act, n, heads.Cols()), s.empty(s.act, n, heads.Q*heads.Size)
	c := call{
		run: func(d device.Device) {
			for _, piece := range [][2]int{{0, first}, {first, n}} {
				if piece[0] == piece[1] {
					continue
				}
				in, to := qkv.Slice(piece[0], piece[1]), out.Slice(piece[0], piece[1])
				d.AttentionCached(&to, &in, &cache, piece[0], heads,
					device.Mask{Layout: mask.Layout, Slopes: mask.Slopes, Sinks: mask.Sinks})
			}
		},
		out:    []*tensor.Tensor{out, &cache.KV},
		factor: biasFactor(mask),
		rounds: roundsWeights(heads),
	}
	c.formulas(attentionCachedOf[float64](qkv, heads, mask, cache.KV.Rows()),
		attentionCachedOf[float32](qkv, heads, mask, cache.KV.Rows()))
	return c
}

func attentionCachedOf[T tensor.Number](qkv *tensor.Tensor, heads device.Heads, mask device.Mask,
	rows int) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		x := read[T](qkv, w)
		out, _ := attend(x, heads, mask, weightOf(qkv, heads, w))
		width := 2 * heads.KV * heads.Size
		kv := make([]T, rows*width)
		for p := range mask.Len {
			copy(kv[p%rows*width:][:width], x[p*heads.Cols()+heads.Q*heads.Size:])
		}
		return [][]T{out, kv}
	}
}
