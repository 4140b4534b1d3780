//go:build cuda && linux

package cuda

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"anneal/attention"
	"anneal/device"
	"anneal/device/conformance"
	"anneal/device/cpu"
	"anneal/internal/filetest"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// flashMemory makes tensors of normally distributed numbers.
type flashMemory struct {
	*tensor.Arena
	seed uint64
}

func newFlashMemory(t *testing.T, d *Device) *flashMemory {
	a, err := d.NewShared("test", 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return &flashMemory{a, 0}
}

func (m *flashMemory) draw(dt tensor.DType, rows, cols int) *tensor.Tensor {
	x := m.New(dt, rows, cols)
	m.seed++
	rng := tensor.NewRNG(m.seed, tensor.PurposeInit, 0)
	for i := range x.Len() {
		x.SetFloat64(i, rng.Normals(uint64(i))[0])
	}
	return &x
}

// wide returns x converted to F64.
func wide(x *tensor.Tensor) *tensor.Tensor {
	y := tensor.Of(make([]float64, x.Len()))
	for i := range x.Len() {
		y.F64()[i] = x.Float64(i)
	}
	z := y.Reshape(x.Rows(), x.Cols())
	return &z
}

// distance returns the largest distance of x from y, divided by y's largest magnitude.
func distance(x, y *tensor.Tensor) float64 {
	far, top := 0.0, 0.0
	for i := range x.Len() {
		a, b := x.Float64(i), y.Float64(i)
		if a == b {
			continue
		}
		if d := math.Abs(a - b); !(d <= far) {
			far = d
		}
		top = math.Max(top, math.Abs(b))
	}
	return far / top
}

// For rows of several blocks of queries and tiles of keys, in every storage, with typical heads and all patterns,
// results agree with the CPU's in FP64 for the same inputs, within the precision of the storage.
func TestAttentionOfLongRowsIsThatOfTheProcessor(t *testing.T) {
	d := newEmulated(t)
	exact, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer exact.Close()
	for _, c := range []struct {
		storage  tensor.DType
		heads    device.Heads
		rows     int
		length   int
		every    int // tokens per document, 0 for none
		pattern  string
		slopes   bool
		allowed  float64
		backward float64
	}{
		{tensor.BF16, device.Heads{Q: 2, KV: 1, Size: 64}, 2, 300, 0, "full", false, 1. / 128, 1. / 64},
		{tensor.BF16, device.Heads{Q: 1, KV: 1, Size: 128}, 1, 200, 0, "full", false, 1. / 128, 1. / 64},
		{tensor.F16, device.Heads{Q: 3, KV: 1, Size: 96}, 1, 200, 70, "full", false, 1. / 1024, 1. / 512},
		{tensor.F16, device.Heads{Q: 2, KV: 2, Size: 40}, 2, 193, 150, "full", true, 1. / 1024, 1. / 512},
		{tensor.BF16, device.Heads{Q: 2, KV: 1, Size: 32, Scale: 0.2}, 1, 160, 0, "full", false, 1. / 128, 1. / 64},
		{tensor.BF16, device.Heads{Q: 2, KV: 1, Size: 64}, 1, 300, 0, "window:100", false, 1. / 128, 1. / 64},
		{tensor.BF16, device.Heads{Q: 4, KV: 2, Size: 64}, 1, 300, 130, "longnet:64", true, 1. / 128, 1. / 64},
		{tensor.F16, device.Heads{Q: 2, KV: 2, Size: 80}, 1, 260, 0, "bigbird:2:1:1:32:5", false, 1. / 1024, 1. / 512},
		{tensor.F16, device.Heads{Q: 4, KV: 1, Size: 64}, 1, 300, 90, "strided:64", false, 1. / 1024, 1. / 512},
		{tensor.BF16, device.Heads{Q: 2, KV: 1, Size: 128}, 1, 200, 0, "fixed:32:8", false, 1. / 128, 1. / 64},
		{tensor.F32, device.Heads{Q: 2, KV: 1, Size: 64}, 1, 300, 110, "longformer:90:40", true, 1e-6, 1e-6},
		{tensor.F32, device.Heads{Q: 1, KV: 1, Size: 256}, 1, 100, 0, "full", false, 1e-6, 1e-6},
		{tensor.F64, device.Heads{Q: 2, KV: 1, Size: 256}, 1, 100, 0, "full", false, 1e-14, 1e-14},
		{tensor.BF16, device.Heads{Q: 2, KV: 1, Size: 36}, 1, 150, 0, "full", false, 1. / 128, 1. / 64},
	} {
		t.Run(fmt.Sprintf("%v/%d/%s", c.storage, c.heads.Size, c.pattern), func(t *testing.T) {
			m := newFlashMemory(t, d)
			n := c.rows * c.length
			mask := device.Mask{Len: c.length}
			if c.every > 0 {
				x := m.New(tensor.I32, n)
				mask.Start = &x
				for i := range n {
					mask.Start.I32()[i] = int32(i % c.length / c.every * c.every)
				}
			}
			p, err := attention.Parse(c.pattern)
			if err == nil {
				mask.Layout, err = attention.Compile(p, c.length, c.heads.Q, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			for h := 0; c.slopes && h < c.heads.Q; h++ {
				mask.Slopes = append(mask.Slopes, math.Exp2(-float64(h+2)))
			}
			cols, stat := c.heads.Q*c.heads.Size, tensor.F32
			if c.storage == tensor.F64 {
				stat = tensor.F64
			}
			qkv, dout := m.draw(c.storage, n, c.heads.Cols()), m.draw(c.storage, n, cols)
			out, lse, dqkv := m.draw(c.storage, n, cols), m.draw(stat, c.heads.Q, n),
				m.draw(c.storage, n, c.heads.Cols())
			d.Attention(out, lse, qkv, c.heads, mask)
			d.AttentionGrad(dqkv, dout, out, lse, qkv, c.heads, mask)
			if err := d.Wait(); err != nil {
				t.Fatal(err)
			}
			wantOut, wantLSE, wantGrad := wide(out), wide(lse), wide(dqkv)
			exact.Attention(wantOut, wantLSE, wide(qkv), c.heads, mask)
			exact.AttentionGrad(wantGrad, wide(dout), wantOut, wantLSE, wide(qkv), c.heads, mask)
			for _, r := range []struct {
				name      string
				got, want *tensor.Tensor
				allowed   float64
			}{{"out", out, wantOut, c.allowed}, {"lse", lse, wantLSE, 1e-6}, {"dqkv", dqkv, wantGrad, c.backward}} {
				if far := distance(r.got, r.want); !(far <= r.allowed) {
					t.Errorf("%s is off by %.3g of its largest number, allowed %.3g", r.name, far, r.allowed)
				}
			}
		})
	}
}

// However a sequence is split, and with the smallest possible cache, each query gets the same bits as in the whole
// sequence, with and without tensor cores. The cache is filled with NaN first, to show that only written rows are
// read.
func TestCachedAttentionHasTheBitsOfAttention(t *testing.T) {
	d := newEmulated(t)
	m := newFlashMemory(t, d)
	rapid.Check(t, func(t *rapid.T) {
		m.Release(0)
		dt := rapid.SampledFrom([]tensor.DType{tensor.BF16, tensor.F16, tensor.F32, tensor.F64}).Draw(t, "storage")
		length := rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(60, 200)).Draw(t, "T")
		kv := rapid.IntRange(1, 2).Draw(t, "K")
		heads := device.Heads{
			Q: kv * rapid.IntRange(1, 2).Draw(t, "H/K"), KV: kv, Size: rapid.SampledFrom([]int{5, 16, 64}).Draw(t, "E"),
		}
		mask := device.Mask{Len: length}
		switch rapid.IntRange(0, 3).Draw(t, "pattern") {
		case 0:
			p, err := attention.Parse(fmt.Sprint("window:", rapid.IntRange(1, 100).Draw(t, "window")))
			if err == nil {
				mask.Layout, err = attention.Compile(p, length, heads.Q, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		case 1:
			mask.Layout = conformance.DrawLayout(t, length, heads.Q)
		}
		if rapid.Bool().Draw(t, "ALiBi") {
			for h := range heads.Q {
				mask.Slopes = append(mask.Slopes, math.Exp2(-float64(h+1)))
			}
		}
		stat := tensor.F32
		if dt == tensor.F64 {
			stat = tensor.F64
		}
		qkv, out, lse := m.draw(dt, length, heads.Cols()), m.draw(dt, length, heads.Q*heads.Size),
			m.draw(stat, heads.Q, length)
		d.Attention(out, lse, qkv, heads, mask)
		reach := mask.Layout.Reach()
		cache := device.Cache{KV: m.New(dt, device.CacheRows(length, reach), 2*kv*heads.Size), Reach: reach}
		for i := range cache.KV.Len() {
			cache.KV.SetFloat64(i, math.NaN())
		}
		again := m.draw(dt, length, heads.Q*heads.Size)
		pieces := device.Mask{Layout: mask.Layout, Slopes: mask.Slopes}
		for first := 0; first < length; {
			n := min(rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(20, 150)).Draw(t, "tokens"), length-first)
			to, from := again.Slice(first, first+n), qkv.Slice(first, first+n)
			d.AttentionCached(&to, &from, &cache, first, heads, pieces)
			first += n
		}
		if err := d.Wait(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Raw(), out.Raw()) {
			t.Fatalf("%v %+v: other bits than in the whole sequence of %d", dt, heads, length)
		}
	})
}

// A call does not allocate once its kernels are loaded.
func TestCallsOfAttentionAllocateNothing(t *testing.T) {
	d := newEmulated(t)
	m := newFlashMemory(t, d)
	for _, size := range []int{36, 64, 128} {
		heads, n := device.Heads{Q: 2, KV: 1, Size: size}, 128
		p, _ := attention.Parse("longnet:64")
		layout, err := attention.Compile(p, n, heads.Q, 0)
		if err != nil {
			t.Fatal(err)
		}
		qkv, out, lse, dqkv := m.draw(tensor.BF16, n, heads.Cols()), m.draw(tensor.BF16, n, 2*size),
			m.draw(tensor.F32, 2, n), m.draw(tensor.BF16, n, heads.Cols())
		for _, mask := range []device.Mask{{Len: n}, {Len: n, Layout: layout, Slopes: []float64{0.5, 0.25}}} {
			run := func() {
				d.Attention(out, lse, qkv, heads, mask)
				d.AttentionGrad(dqkv, out, out, lse, qkv, heads, mask)
			}
			run()
			if allocs := filetest.AllocsPerRun(3, run); allocs > 0 {
				t.Errorf("heads of %d, layout %v: %v allocations", size, mask.Layout != nil, allocs)
			}
		}
	}
}
