package autograd

import (
	"math"
	"slices"
	"testing"

	"anneal/device"
)

// A branch attends to what the tokens of its beginning and its own would in a row of theirs, to the bit; so does each
// branch after others of the same beginning or of another one, longer or shorter.
func TestBranchesAttendToTheirBeginnings(t *testing.T) {
	r, h := newRig(t), device.Heads{Q: 4, KV: 2, Size: 5}
	var all []float64
	for i := range 40 * h.Cols() {
		all = append(all, math.Sin(float64(i*i)))
	}
	rows := func(from, n int) []float64 { return all[from*h.Cols() : (from+n)*h.Cols()] }
	qkv := r.leaf(all, 40, h.Cols())
	out := r.Attention(qkv, h, device.Mask{Len: 40})
	before := slices.Clone(out.Value.F64())
	branches := []Branch{
		{At: 12, Tokens: 5, Base: 2, First: 6}, {At: 17, Tokens: 1, Base: 2, First: 9},
		{At: 18, Tokens: 3, Base: 2, First: 7},
		{At: 32, Tokens: 4, Base: 21, First: 10}, {At: 36, Tokens: 4, Base: 21, First: 1},
	}
	r.AttentionBranches(out, qkv, h, device.Mask{Len: 40}, branches)
	width := h.Q * h.Size
	for _, b := range branches {
		n := b.First + b.Tokens
		whole := r.leaf(slices.Concat(rows(b.Base, b.First), rows(b.At, b.Tokens)), n, h.Cols())
		want := r.Attention(whole, h, device.Mask{Len: n}).Value.F64()[b.First*width:]
		if got := out.Value.F64()[b.At*width : (b.At+b.Tokens)*width]; !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", b, got[:4], want[:4])
		}
		copy(out.Value.F64()[b.At*width:], before[b.At*width:(b.At+b.Tokens)*width])
	}
	if !slices.Equal(out.Value.F64(), before) {
		t.Error("rows of no branch have changed")
	}
}
