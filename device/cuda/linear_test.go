//go:build cuda && linux

package cuda

import (
	"bytes"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// A sequence that comes in pieces, from single tokens to several chunks, has the bits that it has in one pass.
func TestLinearStateContinuesBitForBit(t *testing.T) {
	d := newEmulated(t)
	const length = 215
	pieces := []int{1, 62, 1, 1, 64, 31, 2, 50, 3}
	for _, c := range []struct {
		storage tensor.DType
		size    int
		gated   bool
	}{{tensor.BF16, 33, true}, {tensor.F32, 64, false}, {tensor.F64, 8, true}} {
		memory, err := d.NewShared("test", 4<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer memory.Close()
		heads := device.Heads{Q: 4, KV: 2, Size: c.size}
		wide := tensor.F32
		if c.storage == tensor.F64 {
			wide = tensor.F64
		}
		draw := func(dt tensor.DType, rows, cols int, seed uint64) *tensor.Tensor {
			x := memory.New(dt, rows, cols)
			rng := tensor.NewRNG(seed, tensor.PurposeInit, 0)
			for i := range x.Len() {
				x.SetFloat64(i, 1.5*rng.Normals(uint64(i))[0])
			}
			return &x
		}
		qkv, gates := draw(c.storage, length, heads.Cols(), 1), draw(wide, length, heads.KV, 2)
		if !c.gated {
			gates = nil
		}
		whole, norm := draw(c.storage, length, heads.Q*heads.Size, 3), draw(wide, heads.Q, length, 3)
		d.LinearAttention(whole, norm, qkv, gates, heads, device.Mask{Len: length})

		out := draw(c.storage, length, heads.Q*heads.Size, 4)
		cache := device.Cache{
			KV:    *draw(c.storage, device.LinearChunk, 2*heads.KV*heads.Size, 5),
			State: *draw(wide, heads.KV*(heads.Size+1), heads.Size, 6),
			Gates: *draw(wide, device.LinearChunk, heads.KV, 7),
		}
		first := 0
		for _, n := range pieces {
			in, to := qkv.Slice(first, first+n), out.Slice(first, first+n)
			var open *tensor.Tensor
			if c.gated {
				part := gates.Slice(first, first+n)
				open = &part
			}
			d.LinearAttentionCached(&to, &in, open, &cache, first, heads)
			first += n
		}
		if err := d.Wait(); err != nil {
			t.Fatal(err)
		}
		for i := range length {
			row := out.Slice(i, i+1)
			want := whole.Slice(i, i+1)
			if !bytes.Equal(row.Raw(), want.Raw()) {
				t.Errorf("%v, heads of %d: token %d differs from that of one pass", c.storage, c.size, i)
				break
			}
		}
	}
}
