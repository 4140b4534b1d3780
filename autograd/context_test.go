package autograd

import (
	"fmt"
	"math"
	"testing"

	"anneal/attention"
	"anneal/device"
	"anneal/tensor"
)

// An attentionCase is attention for whole rows, and what one rank makes of it.
type attentionCase struct {
	rows, length  int
	heads         device.Heads
	mask          device.Mask
	linear, gated bool

	qkv, gates, dy    []float64
	out, dqkv, dgates []float64
	start             []int32
	name              string
	documents, alibi  bool
}

// pattern sets the pattern of a case.
func (c *attentionCase) pattern(t *testing.T, text string) {
	t.Helper()
	p, err := attention.Parse(text)
	if err == nil {
		c.mask.Layout, err = attention.Compile(p, c.length, c.heads.Q, 3)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// solve draws the numbers of a case and computes it on one rank.
func (c *attentionCase) solve(t *testing.T) {
	n, h := c.rows*c.length, c.heads
	c.qkv, c.gates, c.dy = normals(1, n*h.Cols()), normals(2, n*h.KV), normals(3, n*h.Q*h.Size)
	c.start = make([]int32, n)
	c.mask.Len, c.mask.Start = c.length, tensor.Of(c.start)
	for i := range n {
		if at := i % c.length; c.documents && at > 0 {
			c.start[i] = c.start[i-1]
			if at%37 == 11 || at == c.length/2 || at%53 == 0 {
				c.start[i] = int32(at)
			}
		}
	}
	for i := range h.Q {
		if c.alibi {
			c.mask.Slopes = append(c.mask.Slopes, math.Exp2(-float64(i+1)))
		}
	}
	r := newRig(t)
	qkv := r.leaf(c.qkv, n, h.Cols())
	var y, gates *Var
	switch {
	case c.linear:
		if c.gated {
			gates = r.leaf(c.gates, n, h.KV)
		}
		y = r.LinearAttention(qkv, gates, h, c.mask)
	default:
		y = r.Attention(qkv, h, c.mask)
	}
	c.out = y.Value.F64()
	r.backward(y, c.dy)
	c.dqkv = qkv.grad.F64()
	if c.gated {
		c.dgates = gates.grad.F64()
	}
}

// own returns this rank's rows of x, whole rows of cols numbers.
func own(z Zigzag, x []float64, cols int) (part []float64) {
	for i := range len(x) / cols / z.Ranks {
		at := z.Token(i) * cols
		part = append(part, x[at:at+cols]...)
	}
	return part
}

// near demands that two lists of numbers differ by at most a share of the largest.
func near(t *testing.T, what string, got, want []float64, share float64) {
	t.Helper()
	top, worst := 0.0, 0.0
	for i, w := range want {
		top, worst = max(top, math.Abs(w)), max(worst, math.Abs(got[i]-w))
		if math.IsNaN(got[i]) {
			worst = math.Inf(1)
		}
	}
	if worst > share*top || len(got) != len(want) {
		t.Errorf("%s: %d numbers, off by %.3g of at most %.3g; want %d", what, len(got), worst, top, len(want))
	}
}

func TestUlyssesIsAttentionOfWholeRows(t *testing.T) {
	mha, gqa := device.Heads{Q: 8, KV: 8, Size: 4}, device.Heads{Q: 8, KV: 2, Size: 6}
	mqa := device.Heads{Q: 8, KV: 1, Size: 4}
	for _, c := range []attentionCase{
		{name: "full", heads: mha},
		{name: "documents", heads: gqa, documents: true},
		{name: "one key-value head", heads: mqa, documents: true},
		{name: "alibi", heads: gqa, alibi: true, documents: true},
		{name: "window:50", heads: gqa, documents: true},
		{name: "longformer:32:8", heads: mha},
		{name: "bigbird:1:1:1:16:5", heads: mha},
		{name: "longformer:20:8:dilation=3:heads=1", heads: gqa, documents: true},
		{name: "strided:16", heads: mha},
		{name: "fixed:16:4", heads: mha, documents: true},
		{name: "longnet:64/1:128/2", heads: gqa},
		{name: "linear", heads: gqa, linear: true, documents: true},
		{name: "linear:gated", heads: gqa, linear: true, gated: true, documents: true},
	} {
		c.rows, c.length = 2, 192
		if _, err := attention.Parse(c.name); err == nil && !c.linear {
			c.pattern(t, c.name)
		}
		c.solve(t)
		for _, ranks := range []int{2, 4, 8} {
			t.Run(fmt.Sprintf("%s on %d", c.name, ranks), func(t *testing.T) { c.onUlysses(t, ranks) })
		}
	}
}

func (c *attentionCase) onUlysses(t *testing.T, ranks int) {
	meet(t, ranks, ranks == 4, func(r *rig, p *testPeer) {
		z, h := r.zigzag(c.mask), c.heads
		n := c.rows * c.length / ranks
		qkv := r.leaf(own(z, c.qkv, h.Cols()), n, h.Cols())
		var y, gates *Var
		if c.linear {
			if c.gated {
				gates = r.leaf(own(z, c.gates, h.KV), n, h.KV)
			}
			y = r.UlyssesLinearAttention(qkv, gates, h, c.mask)
		} else {
			y = r.UlyssesAttention(qkv, h, c.mask)
		}
		for i, want := range own(z, c.out, h.Q*h.Size) {
			if got := y.Value.F64()[i]; got != want {
				t.Errorf("rank %d: number %d is %v, on one rank %v", p.me, i, got, want)
				break
			}
		}
		r.backward(y, own(z, c.dy, h.Q*h.Size))
		near(t, "dqkv", qkv.grad.F64(), own(z, c.dqkv, h.Cols()), 1e-12)
		if c.gated {
			near(t, "dgates", gates.grad.F64(), own(z, c.dgates, h.KV), 1e-12)
		}
	})
}

// What Ulysses sends is (C−1)/C of qkv and its gradient, and of the result three times.
func TestWhatUlyssesSends(t *testing.T) {
	c := attentionCase{rows: 1, length: 64, heads: device.Heads{Q: 8, KV: 4, Size: 4}}
	c.solve(t)
	meet(t, 4, false, func(r *rig, p *testPeer) {
		z, h := r.zigzag(c.mask), c.heads
		y := r.UlyssesAttention(r.leaf(own(z, c.qkv, h.Cols()), 16, h.Cols()), h, c.mask)
		r.backward(y, own(z, c.dy, h.Q*h.Size))
		if sent, want := total(p.calls), int64(8*16*(5*h.Q+4*h.KV)*h.Size*3/4); sent != want {
			t.Errorf("rank %d sent %d bytes, want %d", p.me, sent, want)
		}
	})
}

func TestUlyssesRefusesHeadsThatCannotBeDealt(t *testing.T) {
	for _, c := range []struct {
		q, kv, ranks int
		fits         bool
	}{{8, 8, 8, true}, {8, 2, 4, true}, {8, 2, 8, true}, {6, 3, 2, false}, {6, 6, 4, false}, {12, 4, 6, false}} {
		if err := CheckUlysses(device.Heads{Q: c.q, KV: c.kv, Size: 4}, c.ranks); (err == nil) != c.fits {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Every token belongs to one rank, and Join undoes Cut.
func TestZigzagGivesEveryTokenToOneRank(t *testing.T) {
	for _, ranks := range []int{1, 2, 4, 8} {
		const rows, length = 3, 48
		whole, joined := make([]int32, rows*length), make([]int32, rows*length)
		for i := range whole {
			whole[i], joined[i] = int32(i), -1
		}
		for rank := range ranks {
			z, part := Zigzag{rank, ranks, length}, make([]int32, rows*length/ranks)
			z.Cut(part, whole)
			z.Join(joined, part)
		}
		for i, token := range joined {
			if int(token) != i {
				t.Fatalf("%d ranks: token %d came back as %d", ranks, i, token)
			}
		}
	}
}
