package flash

import (
	"fmt"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/tensor"
)

// Attention with a cache is the forward pass for the last queries of a row, with keys and values from the cache. It
// uses the same tiles of keys in the same order, so every sum keeps its bits. The other queries in a panel do not
// affect a query, and hidden keys add zeros, whatever the ring holds in their place.

// ForwardCached adds the keys and values of qkv [n, (H+2K)·E], at positions first …, to the cache and writes out [n,
// H·E]. See device.Device.AttentionCached.
func (e *Engine) ForwardCached(out, qkv *tensor.Tensor, cache *device.Cache, first int, heads device.Heads,
	mask device.Mask) {
	switch qkv.DType() {
	case tensor.BF16:
		e.pairs(heads).forwardCached(e.pool, out, qkv, cache, first, heads, mask)
	case tensor.F64:
		e.f64.forwardCached(e.pool, out, qkv, cache, first, heads, mask)
	default:
		e.f32.forwardCached(e.pool, out, qkv, cache, first, heads, mask)
	}
}

// forwardCached processes as many tokens at a time as the ring can hold in addition to the keys that the first of them
// sees.
func (r *runner[T]) forwardCached(p *pool.Pool, out, qkv *tensor.Tensor, cache *device.Cache, first int,
	heads device.Heads, mask device.Mask) {
	n, ring := qkv.Rows(), cache.KV.Rows()
	most := n
	if first+n > ring {
		most = min(n, ring-cache.Reach+1)
	}
	if most <= 0 || cache.KV.DType() != qkv.DType() || mask.Start != nil {
		panic(fmt.Sprintf("flash: cache %v of reach %d cannot take %d tokens %v from position %d on",
			&cache.KV, cache.Reach, n, qkv, first))
	}
	for done := 0; done < n; done += most {
		part := min(most, n-done)
		rows, to := &r.part[0], &r.part[1]
		*rows, *to = qkv.Slice(done, done+part), out.Slice(done, done+part)
		mask.Len = first + done + part
		s := rowsOf(rows, heads, mask)
		s.length, s.rows, s.from = mask.Len, 1, first+done
		s.check("out", to, part, heads.Q*heads.Size)
		s.check("the cache", &cache.KV, ring, 2*heads.KV*heads.Size)
		appendKeys(cache, rows, s.from, heads.Q*heads.Size)
		r.runForward(p, forwardJob[T]{
			shape: s, out: matrixOf[T](to), qkv: matrixOf[T](rows), kv: matrixOf[T](&cache.KV),
		})
	}
}

// appendKeys copies keys and values, the columns of qkv from col on, for positions from first on, to their rows of
// the ring.
func appendKeys(cache *device.Cache, qkv *tensor.Tensor, first, col int) {
	size := qkv.DType().Size()
	row, width := cache.KV.Cols()*size, qkv.Cols()*size
	to, from := cache.KV.Raw(), qkv.Raw()
	for i := range qkv.Rows() {
		at := (first + i) % cache.KV.Rows() * row
		copy(to[at:at+row], from[i*width+col*size:])
	}
}
