package autograd

import "anneal/device"

// A Branch is a run of tokens of a batch that continue a beginning elsewhere in the batch. Several answers to one
// question are branches, so the question is computed only once.
type Branch struct {
	At, Tokens  int // the branch: Tokens tokens of the batch from At on
	Base, First int // the tokens before it: First tokens of the batch from Base on
}

// AttentionBranches computes the rows of branches in out [N, H·E], a result of Attention for qkv [N, (H+2K)·E], again,
// so that a branch also sees the keys and values of its beginning. Each branch is a call of AttentionCached with a
// cache filled from qkv, so the result equals that of Attention for the whole sequence, bit for bit. The patterns of
// mask apply to positions in the sequence, not in the batch. AttentionBranches takes memory for one cache of mask.Len
// tokens, and is not recorded.
func (t *Tape) AttentionBranches(out, qkv *Var, heads device.Heads, mask device.Mask, branches []Branch) {
	in := t.value(qkv)
	mark := t.temp.Mark()
	cache := device.Cache{
		KV: t.temp.New(t.Types.Activation, mask.Len, 2*heads.KV*heads.Size), Reach: mask.Len,
	}
	mask.Len, mask.Start = 0, nil
	base, held, refs := -1, 0, t.tensorN // the beginning in the cache, and the number of its tokens there
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
		held = b.First // the branch overwrites what follows the beginning
		to := b.At + b.Tokens
		t.Device.AttentionCached(t.rows(&out.Value, b.At, to), t.rows(in, b.At, to), &cache, b.First, heads, mask)
	}
	t.tensorN = refs
	t.temp.Release(mark)
}
