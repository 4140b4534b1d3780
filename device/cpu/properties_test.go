package cpu

import (
	"testing"

	"anneal/attention"
	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// The scratch memory that the device predicts for products and for attention equals the memory it holds after them.
func TestScratchIsPredicted(t *testing.T) {
	const length, heads, size = 1 << 11, 2, 64
	zeros := func(d tensor.DType, rows, cols int) *tensor.Tensor {
		x := tensor.View(d, make([]byte, rows*cols*d.Size()), rows, cols)
		return &x
	}
	for _, tier := range isa.Tiers() {
		for _, operand := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F64} {
			d := NewTier(tier, 2)
			stored := operand
			if operand == tensor.BF16 {
				stored = tensor.F32
			}
			a, b, dst := zeros(stored, 64, 64), zeros(stored, 64, 64), zeros(stored, 64, 64)
			d.MatMul(dst, a, b, device.NT, device.MatMulOptions{Operand: operand})
			if got, want := d.ScratchBytes(), d.ProductScratch(operand); got != want || got == 0 {
				t.Errorf("%v, products of %v: %d bytes held, %d predicted", tier, operand, got, want)
			}
			d.Close()
		}
	}
	d, h := NewTier(isa.Tiers()[0], 2), device.Heads{Q: heads, KV: heads, Size: size}
	qkv, dqkv := zeros(tensor.BF16, length, h.Cols()), zeros(tensor.BF16, length, h.Cols())
	out, norm := zeros(tensor.BF16, length, heads*size), zeros(tensor.F32, heads, length)
	d.LinearAttention(out, norm, qkv, nil, h, device.Mask{Len: length})
	d.LinearAttentionGrad(dqkv, nil, out, out, norm, qkv, nil, h, device.Mask{Len: length})
	got, want := d.ScratchBytes(), d.LinearAttentionScratch(tensor.BF16, length, length, h, false)
	if got != want || got == 0 {
		t.Errorf("linear: %d bytes held, %d predicted", got, want)
	}
	d.Close()
	for _, pattern := range []string{"full", "window:64", "longnet:64/1:2048/32"} {
		list, err := attention.ParseList(pattern)
		if err != nil {
			t.Fatal(err)
		}
		layout, err := attention.Compile(list[0], length, heads, 0)
		if err != nil {
			t.Fatal(err)
		}
		d := NewTier(isa.Tiers()[0], 2)
		mask := device.Mask{Len: length, Layout: layout}
		d.Attention(out, norm, qkv, h, mask)
		d.AttentionGrad(dqkv, out, out, norm, qkv, h, mask)
		if got, want := d.ScratchBytes(), d.AttentionScratch(tensor.BF16, length, h, mask); got != want || got == 0 {
			t.Errorf("%s: %d bytes held, %d predicted", pattern, got, want)
		}
		d.Close()
	}
}

// Runs that follow each other do not measure the peak again: two measurements differ in their last digits.
func TestThePeakIsMeasuredOnceForDevicesOfAKind(t *testing.T) {
	var peaks [2]float64
	for i := range peaks {
		d := NewTier(isa.Tiers()[0], 1)
		peaks[i] = d.Peak(tensor.F32)
		d.Close()
	}
	if peaks[0] <= 0 || peaks[1] != peaks[0] {
		t.Errorf("peaks of %v GFLOP/s", peaks)
	}
}
