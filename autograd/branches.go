package autograd

import "anneal/device"

// A Branch is tokens of a batch that continue a beginning which stands elsewhere in it: answers to one question follow
// it without its being computed for each of them.
type Branch struct {
	At, Tokens  int // which tokens of the batch it is
	Base, First int // the tokens before it: First tokens of the batch from Base on
}

// AttentionBranches computes the rows of out [N, H·E], a result of Attention for qkv [N, (H+2K)·E], again for the
// tokens of branches, with the keys and values of their beginnings before their own. Each is AttentionCached with a
// cache that is filled from qkv, so that it equals Attention for the whole sequence, bit for bit; the patterns of mask
// are those of the sequence, whatever its place in the batch. It takes one cache of mask.Len tokens, and is not
// recorded.
func (t *Tape) AttentionBranches(out, qkv *Var, heads device.Heads, mask device.Mask, branches []Branch) {
	in := t.value(qkv)
	mark := t.temp.Mark()
	cache := device.Cache{
		KV: t.temp.New(t.Types.Activation, mask.Len, 2*heads.KV*heads.Size), Reach: mask.Len,
	}
	mask.Len, mask.Start = 0, nil
	base, held, refs := -1, 0, t.tensorN // the beginning in the cache, and how many of its tokens
	for _, b := range branches {
		t.tensorN = refs // the headers of each branch are reused
		if b.Base != base {
			base, held = b.Base, 0
		}
		if n := b.First - held; n > 0 {
			t.Device.CopyRuns(t.ref(cache.KV), in, device.Runs{
				Count: 1, Rows: n, Cols: cache.KV.Cols(), To: device.Place{Row: held},
				From: device.Place{Row: base + held, Col: heads.Q * heads.Size},
			})
		}
		held = b.First // the branch takes the place of what follows
		to := b.At + b.Tokens
		t.Device.AttentionCached(t.rows(&out.Value, b.At, to), t.rows(in, b.At, to), &cache, b.First, heads, mask)
	}
	t.tensorN = refs
	t.temp.Release(mark)
}
