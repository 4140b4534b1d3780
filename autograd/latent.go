package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Moving columns for multi-head latent attention. The projection of the stream, x [N, H·E+R+P], holds queries, a
// latent of R elements, and a rotary key of P elements that all heads share; attention needs queries, keys and values
// of whole heads. Everything is copied, so only the sum of the shared key's gradients is rounded.

// Latent returns a copy of the latent [N, R] of x. Its gradient goes to some columns of x's gradient; LatentHeads
// writes the others.
func (t *Tape) Latent(x *Var, heads device.Heads, rank int) *Var {
	in := t.value(x)
	out := t.wrap(t.kept(t.Types.Activation, in.Rows(), rank))
	t.columns(&out.Value, in, 0, heads.Q*heads.Size, rank, false)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.out, n.heads = latentBack, x, out, heads
	}
	return out
}

func latentBack(t *Tape, n *node) {
	d, _ := t.gradOf(n.out)
	g, _ := t.gradOf(n.x)
	t.columns(g, d, n.heads.Q*n.heads.Size, 0, d.Cols(), false)
}

// LatentHeads returns qkv [N, 3H·E] from x and kv [N, H·(E−P)+H·E]. kv holds the values and, without their rotary
// part, the keys of all heads; the last P elements of every key are x's rotary key. Call Latent on x before.
func (t *Tape) LatentHeads(x, kv *Var, heads device.Heads) *Var {
	in, up := t.value(x), t.value(kv)
	width := heads.Q * heads.Size
	out := t.wrap(t.kept(t.Types.Activation, in.Rows(), heads.Cols()))
	still := (up.Cols() - width) / heads.Q
	p := heads.Size - still
	t.columns(&out.Value, in, 0, 0, width, false)
	t.columns(&out.Value, up, 2*width, heads.Q*still, width, false)
	for h := range heads.Q {
		t.columns(&out.Value, up, width+h*heads.Size, h*still, still, false)
		t.columns(&out.Value, in, width+h*heads.Size+still, in.Cols()-p, p, false)
	}
	if t.grad {
		n := t.node()
		n.backward, n.x, n.y, n.out, n.heads = latentHeadsBack, x, kv, out, heads
	}
	return out
}

func latentHeadsBack(t *Tape, n *node) {
	d, _ := t.gradOf(n.out)
	dx, dkv := t.onlyGrad(n.x), t.onlyGrad(n.y)
	heads := n.heads
	width := heads.Q * heads.Size
	still := (dkv.Cols() - width) / heads.Q
	p := heads.Size - still
	mark := t.temp.Mark()
	shared := t.ref(t.temp.New(t.Types.Stat, d.Rows(), p))
	t.Device.Zero(shared)
	t.columns(dx, d, 0, 0, width, false)
	t.columns(dkv, d, heads.Q*still, 2*width, width, false)
	for h := range heads.Q {
		t.columns(dkv, d, h*still, width+h*heads.Size, still, false)
		t.columns(shared, d, 0, width+h*heads.Size+still, p, true)
	}
	t.columns(dx, shared, dx.Cols()-p, 0, p, false)
	t.temp.Release(mark)
}

// columns copies n columns of src, from column from on, to column to of dst, or adds them.
func (t *Tape) columns(dst, src *tensor.Tensor, to, from, n int, add bool) {
	t.Device.CopyRuns(dst, src, device.Runs{
		Count: 1, Rows: dst.Rows(), Cols: n, To: device.Place{Col: to}, From: device.Place{Col: from}, Add: add,
	})
}
