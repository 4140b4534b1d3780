//go:build cuda && linux

package cuda

import (
	"fmt"

	"anneal/device"
	"anneal/tensor"
)

// AttentionCached implements device.Device. It processes as many tokens at a time as the ring can hold in addition to
// the keys that the first of them sees.
func (d *Device) AttentionCached(out, qkv *tensor.Tensor, cache *device.Cache, first int, heads device.Heads,
	mask device.Mask) {
	const op = "AttentionCached"
	n, ring := qkv.Rows(), cache.KV.Rows()
	most := n
	if first+n > ring {
		most = min(n, ring-cache.Reach+1)
	}
	if most <= 0 || cache.KV.DType() != qkv.DType() || mask.Start != nil {
		panic(fmt.Sprintf("cuda: %s: cache %v of reach %d cannot take %d tokens %v from position %d on",
			op, &cache.KV, cache.Reach, n, qkv, first))
	}
	shape(op, "out", out, n, heads.Q*heads.Size)
	dtype(op, "out", out, qkv.DType())
	shape(op, "the cache", &cache.KV, ring, 2*heads.KV*heads.Size)
	for done := 0; done < n; done += most {
		part := min(most, n-done)
		rows, to := qkv.Slice(done, done+part), out.Slice(done, done+part)
		f := d.newFlash(op, &rows, heads, mask, first+done+part, first+done)
		f.ring = ring
		c := d.begin("flash_join", "cache_append", f.storage)
		c.tensor(&cache.KV)
		c.column(&rows, f.keyCol())
		c.int(ring)
		c.int(cache.KV.Cols())
		c.int(heads.Cols())
		c.int(f.from)
		c.launch(part, 128, 0)
		d.forward(&f, &to, nil, &rows, &cache.KV, 0)
	}
}
