//go:build cuda && linux

package cuda

import (
	"testing"

	"anneal/attention"
	"anneal/device"
	"anneal/tensor"
)

// The scratch memory that the card predicts for attention equals the scratch memory that it holds afterwards.
func TestScratchOfAttentionIsPredicted(t *testing.T) {
	const length, rows = 256, 2
	h := device.Heads{Q: 2, KV: 1, Size: 16}
	for _, pattern := range []string{"full", "window:64", "longnet:64/1:256/4"} {
		list, err := attention.ParseList(pattern)
		if err != nil {
			t.Fatal(err)
		}
		layout, err := attention.Compile(list[0], length, h.Q, 0)
		if err != nil {
			t.Fatal(err)
		}
		d, mask := newEmulated(t), device.Mask{Len: length, Layout: layout}
		want := d.AttentionScratch(tensor.BF16, rows*length, h, mask)
		if d.ScratchBytes() != 0 {
			t.Fatal("the card holds scratch memory before a call")
		}
		m := newFlashMemory(t, d)
		qkv, dqkv := m.draw(tensor.BF16, rows*length, h.Cols()), m.draw(tensor.BF16, rows*length, h.Cols())
		out, lse := m.draw(tensor.BF16, rows*length, h.Q*h.Size), m.draw(tensor.F32, h.Q, rows*length)
		d.Attention(out, lse, qkv, h, mask)
		d.AttentionGrad(dqkv, out, out, lse, qkv, h, mask)
		if err := d.Wait(); err != nil {
			t.Fatal(err)
		}
		if got := d.ScratchBytes(); got != want || got == 0 {
			t.Errorf("%s: %d bytes held, %d predicted", pattern, got, want)
		}
	}
}

// The prediction is also right for linear attention, with and without gates.
func TestScratchOfLinearAttentionIsPredicted(t *testing.T) {
	const length, rows = 160, 2
	h := device.Heads{Q: 2, KV: 1, Size: 16}
	for _, gated := range []bool{false, true} {
		d, mask := newEmulated(t), device.Mask{Len: length}
		want := d.LinearAttentionScratch(tensor.BF16, rows*length, length, h, gated)
		m := newFlashMemory(t, d)
		qkv, dqkv := m.draw(tensor.BF16, rows*length, h.Cols()), m.draw(tensor.BF16, rows*length, h.Cols())
		out, norm := m.draw(tensor.BF16, rows*length, h.Q*h.Size), m.draw(tensor.F32, h.Q, rows*length)
		var gates, dgates *tensor.Tensor
		if gated {
			gates, dgates = m.draw(tensor.F32, rows*length, h.KV), m.draw(tensor.F32, rows*length, h.KV)
		}
		d.LinearAttention(out, norm, qkv, gates, h, mask)
		d.LinearAttentionGrad(dqkv, dgates, out, out, norm, qkv, gates, h, mask)
		if err := d.Wait(); err != nil {
			t.Fatal(err)
		}
		if got := d.ScratchBytes(); got != want || got == 0 {
			t.Errorf("gated %v: %d bytes held, %d predicted", gated, got, want)
		}
	}
}
