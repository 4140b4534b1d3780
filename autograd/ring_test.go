package autograd

import (
	"fmt"
	"slices"
	"testing"

	"anneal/attention"
	"anneal/device"
	"anneal/device/devicetest"
	"anneal/tensor"
)

// Ring attention and its gradient are those of one rank to 1e-12, whatever else lies in temporary memory.
func TestRingIsAttentionOfWholeRows(t *testing.T) {
	mha, gqa := device.Heads{Q: 4, KV: 4, Size: 6}, device.Heads{Q: 4, KV: 2, Size: 6}
	for _, c := range []attentionCase{
		{name: "full", heads: mha},
		{name: "documents", heads: gqa, documents: true},
		{name: "alibi", heads: gqa, alibi: true},
		{name: "alibi and documents", heads: gqa, alibi: true, documents: true},
		{name: "window:20", heads: gqa, documents: true},
		{name: "window:130", heads: gqa},
		{name: "window:50", heads: mha, alibi: true},
		{name: "longformer:32:8", heads: mha},
		{name: "bigbird:1:1:1:16:5", heads: mha, documents: true},
		{name: "longformer:20:8:dilation=3:heads=1", heads: gqa, documents: true},
		{name: "strided:16", heads: mha},
		{name: "fixed:16:4", heads: mha, documents: true},
		{name: "longnet:64/1:128/2", heads: gqa},
		{name: "longnet:64/1:192/4", heads: mha, alibi: true},
	} {
		c.rows, c.length = 2, 192
		if _, err := attention.Parse(c.name); err == nil {
			c.pattern(t, c.name)
		}
		c.solve(t)
		for _, ranks := range []int{2, 4, 8} {
			t.Run(fmt.Sprintf("%s on %d", c.name, ranks), func(t *testing.T) { c.onRing(t, ranks) })
		}
	}
}

func (c *attentionCase) onRing(t *testing.T, ranks int) {
	meet(t, ranks, ranks == 4, func(r *rig, p *testPeer) {
		z, h, n := r.zigzag(c.mask), c.heads, c.rows*c.length/ranks
		seq := &Sequence{Parts: NewParts(r.keep, z, c.rows, true, c.alibi)}
		seq.Parts.Fill(c.start)
		mask := seq.Parts.Mask
		mask.Layout, mask.Slopes = c.mask.Layout, c.mask.Slopes
		qkv := r.leaf(own(z, c.qkv, h.Cols()), n, h.Cols())
		y := r.RingAttention(qkv, h, mask, seq)
		near(t, "out", y.Value.F64(), own(z, c.out, h.Q*h.Size), 1e-12)
		r.backward(y, own(z, c.dy, h.Q*h.Size))
		near(t, "dqkv", qkv.grad.F64(), own(z, c.dqkv, h.Cols()), 1e-12)
	})
}

// Every hop costs every rank as many pairs of a query and a key, and all hops together compute every causal pair once.
func TestRingDealsPairsEqually(t *testing.T) {
	for _, ranks := range []int{2, 4, 8} {
		for _, alibi := range []bool{false, true} {
			const length = 96
			all := 0
			for hop := range ranks {
				first := 0
				for rank := range ranks {
					z, n := Zigzag{rank, ranks, length}, 0
					for _, f := range z.frames((rank-hop+ranks)%ranks, alibi) {
						n += pairs(f)
					}
					if rank == 0 {
						first = n
					}
					if all += n; n != first {
						t.Errorf("%d ranks, hop %d: rank %d computes %d pairs, rank 0 %d", ranks, hop, rank, n, first)
					}
				}
			}
			if all != length*(length+1)/2 {
				t.Errorf("%d ranks, ALiBi %v: %d pairs, want %d", ranks, alibi, all, length*(length+1)/2)
			}
		}
	}
}

// pairs counts the causal pairs of a frame.
func pairs(f *frame) (n int) {
	for _, q := range f.queries {
		for _, k := range f.keys {
			switch {
			case q == k:
				n += f.size * (f.size + 1) / 2
			case k < q:
				n += f.size * f.size
			}
		}
	}
	return n
}

// A rank sends its keys and values, of half of its tokens to the ranks after it; their gradients come home the same
// way.
func TestWhatRingSends(t *testing.T) {
	const ranks = 4
	c := attentionCase{rows: 2, length: 64, heads: device.Heads{Q: 4, KV: 2, Size: 4}}
	c.solve(t)
	meet(t, ranks, false, func(r *rig, p *testPeer) {
		z, h, n := r.zigzag(c.mask), c.heads, c.rows*c.length/ranks
		seq := &Sequence{Parts: NewParts(r.keep, z, c.rows, true, false)}
		seq.Parts.Fill(c.start)
		y := r.RingAttention(r.leaf(own(z, c.qkv, h.Cols()), n, h.Cols()), h, seq.Parts.Mask, seq)
		forward := total(p.calls)
		r.backward(y, own(z, c.dy, h.Q*h.Size))
		chunk := int64(8 * n / 2 * 2 * h.KV * h.Size)
		if want := chunk * int64(ranks-1-p.me+2*p.me); forward != want {
			t.Errorf("rank %d sent %d bytes forward, want %d", p.me, forward, want)
		}
		want := 2*chunk*int64(ranks-1-p.me+2*p.me) + chunk*int64(p.me+2*(ranks-1-p.me))
		if got := total(p.calls); got != want {
			t.Errorf("rank %d sent %d bytes forward and backward, want %d", p.me, got, want)
		}
	})
}

// What a device apart has of the starts of documents is what Fill took.
func TestPartsAreSentToADeviceApart(t *testing.T) {
	dev, err := devicetest.New(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dev.Close)
	mem, err := dev.NewArena("batch", 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mem.Close() })
	p := NewParts(mem, Zigzag{Rank: 1, Ranks: 2, Len: 16}, 2, true, false)
	start := make([]int32, 32)
	for i := range start {
		start[i] = int32(i % 16 / 5 * 5) // documents of five tokens
	}
	p.Fill(start)
	p.Send(dev)
	// Rank 1 has chunks 1 and 2, tokens 4 to 11. Its frame with keys of rank 0 begins with chunk 0.
	for _, x := range []struct {
		at   *tensor.Tensor
		want []int32
	}{
		{p.Mask.Start, start},
		{&p.hops[0][0].start, []int32{0, 1, 1, 1, 1, 1, 6, 6, 0, 1, 1, 1, 1, 1, 6, 6}},
		{&p.hops[1][0].start, []int32{0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 10, 10, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 10, 10}},
	} {
		got := make([]int32, x.at.Len())
		dev.Read(tensor.Of(got).Raw(), x.at)
		if !slices.Equal(got, x.want) {
			t.Errorf("the device has %v, want %v", got, x.want)
		}
	}
}

// total adds a list of bytes.
func total(list []int64) (n int64) {
	for _, x := range list {
		n += x
	}
	return n
}
