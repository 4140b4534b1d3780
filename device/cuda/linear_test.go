//go:build cuda && linux

package cuda

import (
	"bytes"
	"math"
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/tensor"
)

// linearMemory makes tensors of normally distributed numbers in memory of the device.
func linearMemory(t *testing.T, d *Device) func(dt tensor.DType, rows, cols int, seed uint64) *tensor.Tensor {
	memory, err := d.NewShared("test", 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	return func(dt tensor.DType, rows, cols int, seed uint64) *tensor.Tensor {
		x := memory.New(dt, rows, cols)
		rng := tensor.NewRNG(seed, tensor.PurposeInit, 0)
		for i := range x.Len() {
			x.SetFloat64(i, 1.5*rng.Normals(uint64(i))[0])
		}
		return &x
	}
}

// Rows with more chunks than the scan of states reads at once, and with documents of one to many chunks, agree with
// the masked quadratic form.
func TestLinearAttentionOfManyChunks(t *testing.T) {
	d := newEmulated(t)
	draw := linearMemory(t, d)
	const length, rows, n = 650, 2, 1300
	heads := device.Heads{Q: 2, KV: 1, Size: 5}
	qkv, gates, dout := draw(tensor.F64, n, heads.Cols(), 1), draw(tensor.F64, n, heads.KV, 2),
		draw(tensor.F64, n, heads.Q*heads.Size, 3)
	for i := range gates.Len() {
		gates.SetFloat64(i, 5+gates.Float64(i)) // slow decay, so that many chunks matter
	}
	at := draw(tensor.F32, n, 1, 4).Raw()
	start := tensor.View(tensor.I32, at, n)
	for i := range n {
		for _, begin := range []int32{0, 3, 100, 128, 600} {
			if int(begin) <= i%length {
				start.I32()[i] = begin
			}
		}
	}
	out, norm := draw(tensor.F64, n, heads.Q*heads.Size, 5), draw(tensor.F64, heads.Q, n, 5)
	dqkv, dgates := draw(tensor.F64, n, heads.Cols(), 5), draw(tensor.F64, n, heads.KV, 5)
	mask := device.Mask{Len: length, Start: &start}
	d.LinearAttention(out, norm, qkv, gates, heads, mask)
	d.LinearAttentionGrad(dqkv, dgates, dout, out, norm, qkv, gates, heads, mask)
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
	wantOut, wantNorm := conformance.LinearAttention(qkv.F64(), gates.F64(), heads, length, start.I32())
	wantQKV, wantGates := conformance.LinearAttentionGrad(dout.F64(), nil, qkv.F64(), gates.F64(), heads,
		length, start.I32())
	for _, c := range []struct {
		name      string
		got, want []float64
	}{
		{"out", out.F64(), wantOut}, {"norm", norm.F64(), wantNorm}, {"dqkv", dqkv.F64(), wantQKV},
		{"dgates", dgates.F64(), wantGates},
	} {
		top, far, worst := 0.0, 0.0, 0
		for i, w := range c.want {
			top = max(top, math.Abs(w))
			if off := math.Abs(c.got[i] - w); !(off <= far) {
				far, worst = off, i
			}
		}
		if !(far <= 1e-11*top) {
			t.Errorf("%s: element %d is %v, want %v: off by %.3g of %.3g",
				c.name, worst, c.got[worst], c.want[worst], far, top)
		}
	}
}

// A sequence that is processed in pieces, from single tokens to several chunks, has the same bits as in one pass.
func TestLinearStateContinuesBitForBit(t *testing.T) {
	d := newEmulated(t)
	draw := linearMemory(t, d)
	const length = 215
	pieces := []int{1, 62, 1, 1, 64, 31, 2, 50, 3}
	for _, c := range []struct {
		storage tensor.DType
		size    int
		gated   bool
	}{{tensor.BF16, 33, true}, {tensor.F32, 64, false}, {tensor.F64, 8, true}} {
		heads := device.Heads{Q: 4, KV: 2, Size: c.size}
		wide := tensor.F32
		if c.storage == tensor.F64 {
			wide = tensor.F64
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
