package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
)

// latent is multi-head latent attention (MLA; DeepSeek-AI 2024, arXiv 2405.04434): keys and values of all heads come
// from one latent of R elements per token, and P elements of every key, which are rotated, are the same for all heads.
//
//	q, c, r = h·W_downᵀ              [N, H·E], [N, R], [N, P]
//	k, v    = RMSNorm(c)·W_upᵀ       [N, H·(E−P)], [N, H·E]
//	key of head i = [k_i, rope(r)]   the last P elements of every query are rotated, too
//
// Queries are not compressed (as in DeepSeek-V2-Lite), and values are as long as keys: attention's kernels have one
// size of a head. Parameters of keys and values: R·H·(2E−P) + D·(R+P) instead of 2·D·H·E.
//
// Its purpose is a cache of R+P numbers per token in generation. Generation here still caches whole keys and values,
// so MLA saves parameters but no cache memory. For a small cache today use model.kv_heads.
type latent struct {
	gain *nn.Param // [R]
	up   *nn.Param // [H·(E−P) + H·E, R]
}

// newLatent declares the matrices of a's queries, keys and values.
func newLatent(b *builder, a *attention) {
	c := b.config
	q, k := c.Heads*c.HeadDim, c.Heads*(c.HeadDim-c.RopeHeadDim)
	a.wqkv = b.reader("attention.down", b.width, nn.Part{Name: "q", Rows: q},
		nn.Part{Name: "latent", Rows: c.KVLoraRank}, nn.Part{Name: "rope", Rows: c.RopeHeadDim})
	a.latent = &latent{gain: b.gain("attention.latent_norm", c.KVLoraRank, 1)}
	up := b.add("attention.up", nn.Matrix, nn.Growth{In: 1, Out: 1, Depth: 1}, k+q, c.KVLoraRank)
	up.Parts = []nn.Part{{Name: "k", Rows: k}, {Name: "v", Rows: q}}
	for i := range up.Parts {
		up.Parts[i].Std = c.std(inner, up.Parts[i].Rows, c.KVLoraRank, up.Growth)
	}
	a.latent.up = up
}

// heads returns qkv [N, 3H·E] from x = [q, c, r] [N, H·E+R+P].
func (l *latent) heads(t *autograd.Tape, x *autograd.Var, h device.Heads, eps float64) *autograd.Var {
	rank := l.gain.Shape[0]
	c := t.Latent(x, h, rank)                                                          // [N, R]
	c = t.QKNorm(c, &l.gain.Param, &l.gain.Param, device.Heads{Q: 1, Size: rank}, eps) // [N, R]  in place
	return t.LatentHeads(x, t.Linear(c, &l.up.Param), h)                               // [N, 3H·E]
}
