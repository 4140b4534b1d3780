package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// ShortConv returns silu of a causal convolution of every column of x [N, C] with k taps of its own, [C, k], within
// documents (device.Device.ShortConv). It keeps x and the result.
func (t *Tape) ShortConv(x *Var, taps *Param, mask device.Mask) *Var {
	in := t.value(x)
	out := t.wrap(t.kept(t.Types.Activation, in.Rows(), in.Cols()))
	t.Device.ShortConv(&out.Value, in, &taps.Value, mask)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.w, n.out, n.mask = shortConvBack, x, taps, out, mask
	}
	return out
}

func shortConvBack(t *Tape, n *node) {
	d, _ := t.gradOf(n.out)
	g := t.onlyGrad(n.x)
	t.Device.ShortConvGrad(g, t.sumGrad(n.w), d, t.value(n.x), &n.w.Value, n.mask)
}

// ShortConvCached is ShortConv for a batch that continues sequences in layer number layer of their caches. It adds the
// inputs to the caches, and is not recorded.
func (t *Tape) ShortConvCached(x *Var, taps *Param, caches []*Cache, layer int) *Var {
	in := t.value(x)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), in.Cols()))
	before := taps.Value.Cols() - 1
	from, refs := 0, t.tensorN
	for _, c := range caches {
		t.tensorN = refs // the headers of each sequence are reused
		mark := t.temp.Mark()
		ring, has := &c.Inputs[layer], min(before, c.First)
		n := has + c.Tokens
		a := t.temp.New(in.DType(), before+c.Tokens, in.Cols()) // its largest size, so that plans measure it
		b := t.temp.New(in.DType(), before+c.Tokens, in.Cols())
		z, y := t.rows(&a, 0, n), t.rows(&b, 0, n) // [n, C]
		for i := range has {                       // the tokens before
			t.copyRows(z, ring, i, (c.First-has+i)%ring.Rows(), 1)
		}
		t.copyRows(z, in, has, from, c.Tokens)
		t.Device.ShortConv(y, z, &taps.Value, device.Mask{Len: n})
		t.copyRows(&out.Value, y, from, has, c.Tokens)
		for i := max(c.Tokens-ring.Rows(), 0); i < c.Tokens; {
			at := (c.First + i) % ring.Rows()
			rows := min(ring.Rows()-at, c.Tokens-i)
			t.copyRows(ring, in, at, from+i, rows)
			i += rows
		}
		t.temp.Release(mark)
		from += c.Tokens
	}
	return out
}

// copyRows copies n rows of src from row number from to row number to of dst.
func (t *Tape) copyRows(dst, src *tensor.Tensor, to, from, n int) {
	t.Device.CopyRuns(dst, src, device.Runs{
		Count: 1, Rows: n, Cols: src.Cols(), To: device.Place{Row: to}, From: device.Place{Row: from},
	})
}
