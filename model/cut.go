package model

import (
	"fmt"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
)

// How tensor parallelism cuts layers: heads, hidden units and tokens of the vocabulary are divided among its ranks in
// order (Shoeybi et al. 2019, arXiv 1909.08053). autograd/tensor_parallel.go describes what the ranks exchange.

// cuts reports whether layers are cut.
func (p Part) cuts() bool { return p.Tensors > 1 }

// share returns which of the n units of a weight this rank has. If there are fewer units than ranks, several ranks
// have the same unit, and the number of ranks must be a multiple of n.
func (p Part) share(n int) nn.Span {
	switch {
	case !p.cuts():
		return nn.Span{To: n}
	case n < p.Tensors:
		unit := p.Tensor * n / p.Tensors
		return nn.Span{From: unit, To: unit + 1}
	}
	return nn.Span{From: p.Tensor * n / p.Tensors, To: (p.Tensor + 1) * n / p.Tensors}
}

// sharers returns the ranks that have the same units, out of n, as this rank.
func (p Part) sharers(n int) nn.Span {
	if n >= p.Tensors {
		return nn.Span{From: p.Tensor, To: p.Tensor + 1}
	}
	group := p.Tensors / n
	first := p.Tensor / group * group
	return nn.Span{From: first, To: first + group}
}

// everyone returns all ranks of tensor parallelism.
func (p Part) everyone() nn.Span { return nn.Span{To: p.Tensors} }

// heads returns the numbers of heads that this rank has.
func (p Part) heads(h device.Heads) device.Heads {
	h.Q, h.KV = p.share(h.Q).Len(), p.share(h.KV).Len()
	return h
}

// slopes returns the slopes of the heads that this rank has.
func (p Part) slopes(all []float64) []float64 {
	s := p.share(len(all))
	return all[s.From:s.To]
}

// place cuts a weight to this rank's region; region returns the region of any rank.
func (p Part) place(w *nn.Param, cut autograd.Cut, region func(p Part) nn.Region) {
	if !p.cuts() {
		return
	}
	for r := range p.Tensors {
		of := p
		of.Tensor = r
		w.Regions = append(w.Regions, region(of))
	}
	w.Cut = cut
	w.Place(w.Regions[p.Tensor])
}

// cutRows cuts every part of a weight or bias to the rows of this rank. Groups of unit rows stay together.
func (p Part) cutRows(w *nn.Param, unit int, parts []nn.Part) {
	p.place(w, autograd.Outputs, func(p Part) nn.Region {
		r, from := nn.Whole(w.Shape), 0
		r.Rows = nil
		for _, part := range parts {
			s := p.share(part.Rows / unit)
			r.Rows = append(r.Rows, nn.Span{From: from + s.From*unit, To: from + s.To*unit})
			from += part.Rows
		}
		return r
	})
}

// cutCols cuts a weight to the columns of this rank. Groups of unit columns stay together.
func (p Part) cutCols(w *nn.Param, unit int) {
	p.place(w, autograd.Inputs, func(p Part) nn.Region {
		r, s := nn.Whole(w.Shape), p.share(w.Shape[1]/unit)
		r.Cols = nn.Span{From: s.From * unit, To: s.To * unit}
		return r
	})
}

// cutTable cuts a table with one row per token to the rows of this rank.
func (p Part) cutTable(w *nn.Param) {
	p.cutRows(w, 1, []nn.Part{{Rows: w.Shape[0]}})
	w.Rows = autograd.Rows{First: w.Region.Rows[0].From, All: w.Shape[0]}
}

// sumRows marks the rows of w from local row first on as partial: their gradient is the sum of the gradients that the
// given ranks compute.
func (p Part) sumRows(w *nn.Param, first int, ranks nn.Span) {
	if p.cuts() && ranks.Len() > 1 {
		w.Terms = true
		w.Partial = nn.Partial{Rows: nn.Span{From: first, To: w.Region.Height()}, Peers: ranks}
	}
}

// sumAll marks all of w as partial: each rank computes a gradient from its own heads or hidden units.
func (p Part) sumAll(w *nn.Param) { p.sumRows(w, 0, p.everyone()) }

// sumTokens marks all of w as partial in sequence parallelism, where each rank has its own tokens.
func (p Part) sumTokens(w *nn.Param) {
	if p.Sequence {
		p.sumAll(w)
	}
}

// SumPartial sums, over the peers of tensor parallelism, those gradients of params that each peer has computed in
// part. All peers call it with the same parameters after the backward pass of their unit.
func (m *Decoder) SumPartial(t *autograd.Tape, params []*nn.Param) {
	m.terms = m.terms[:0]
	for _, p := range params {
		if x := p.Partial; x != (nn.Partial{}) && p.HasGrad() {
			m.terms = append(m.terms, autograd.Term{
				Grad: p.Grad.Slice(x.Rows.From, x.Rows.To), From: x.Peers.From, To: x.Peers.To,
			})
		}
	}
	t.SumTerms(m.terms)
}

// A CutError says that a model cannot be cut for tensor parallelism.
type CutError struct {
	Key  string // key of the configuration that prevents the cut
	Text string
	Try  string
}

func (e *CutError) Error() string { return e.Text + "\n  try " + e.Try }

// CheckTensors returns a *CutError if layers of the model cannot be cut for n ranks of tensor parallelism.
func (c Config) CheckTensors(n int) error {
	if n <= 1 {
		return nil
	}
	divides := func(key string, size int) error {
		if size%n == 0 {
			return nil
		}
		return &CutError{key, fmt.Sprintf("%s = %d is not a multiple of parallel.tensor = %d, so it cannot be cut",
			key, size, n), tryTensors(n, size)}
	}
	if c.KVLoraRank > 0 {
		return &CutError{"model.kv_lora_rank", "model.kv_lora_rank does not work with parallel.tensor: all heads " +
			"read one latent", "parallel.tensor = 1"}
	}
	if c.normsWhole() {
		return &CutError{"model.family", "model.family = olmo2 does not work with parallel.tensor: one norm is over " +
			"all heads", "parallel.tensor = 1"}
	}
	if err := divides("model.heads", c.Heads); err != nil {
		return err
	}
	if k := c.KVHeads; k%n != 0 && n%k != 0 {
		return &CutError{"model.kv_heads", fmt.Sprintf("model.kv_heads = %d neither is a multiple of parallel.tensor "+
			"= %d nor divides it, so heads cannot be cut", k, n), tryTensors(n, k)}
	}
	ffn := []struct {
		key  string
		size int
	}{{"model.ffn", c.FFN}}
	if c.Family == "qwen3_moe" {
		ffn[0].key, ffn[0].size = "model.expert_ffn", c.ExpertFFN
		if c.SharedExpertFFN > 0 {
			ffn = append(ffn, struct {
				key  string
				size int
			}{"model.shared_expert_ffn", c.SharedExpertFFN})
		}
	}
	for _, f := range ffn {
		if err := divides(f.key, f.size); err != nil {
			return err
		}
	}
	for i := range c.Layers {
		if l, _ := c.linear(i); l.Rule == device.VectorGateRule {
			return &CutError{"model.attention", fmt.Sprintf("model.attention = gla in layer %d cannot be cut for "+
				"parallel.tensor = %d: all its gates come from the same 16 numbers", i, n), "parallel.tensor = 1"}
		}
	}
	if c.Vocab < n {
		return &CutError{"model.vocab", fmt.Sprintf("a vocabulary of %d tokens has fewer than parallel.tensor = %d",
			c.Vocab, n), tryTensors(n, c.Vocab)}
	}
	return nil
}

// tryTensors proposes the largest number of ranks below n that divides size.
func tryTensors(n, size int) string {
	for n--; size%n != 0; n-- {
	}
	return fmt.Sprintf("parallel.tensor = %d", n)
}
