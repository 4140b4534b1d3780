package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Previous returns, for each token of ids [N] (I32), the result of row for the token before it and the token itself:
// [N] I32, valid until Reset. It is device.Elsewhere for the first token of a document. Before a batch that continues
// a sequence comes the token Cache.Before; before a branch comes the last token of its beginning. The host computes
// the result, and a device with its own memory waits for it.
func (t *Tape) Previous(ids *tensor.Tensor, seq *Sequence, row func(before, id int32) int32) *tensor.Tensor {
	n, p := ids.Len(), &t.pairs
	if p[0].IsZero() || p[0].Len() < n {
		p[0], p[1] = *tensor.Of(make([]int32, n)), *tensor.Of(make([]int32, n))
	}
	tokens, positions := t.ref(p[0].Slice(0, n)), t.ref(p[1].Slice(0, n))
	t.Device.Read(tokens.Raw(), ids)
	t.Device.Read(positions.Raw(), &seq.Pos)
	list, pos := tokens.I32(), positions.I32()
	if seq.Caches == nil {
		previous(list, pos, 0, seq.Branches, row)
	}
	for _, c := range seq.Caches {
		previous(list[:c.Tokens], pos[:c.Tokens], c.Before, nil, row)
		list, pos = list[c.Tokens:], pos[c.Tokens:]
	}
	out := t.ref(t.keep.New(tensor.I32, n))
	t.Device.Write(out, tokens.Raw())
	return out
}

// previous replaces each token by the result of row. It goes from the last token to the first, so that earlier tokens
// are still unchanged. Branches are in the order of their places.
func previous(tokens, pos []int32, before int32, branches []Branch, row func(before, id int32) int32) {
	last := len(branches) - 1
	for i := len(tokens) - 1; i >= 0; i-- {
		switch {
		case pos[i] == 0:
			tokens[i] = device.Elsewhere
		case last >= 0 && i == branches[last].At:
			tokens[i] = row(tokens[branches[last].Base+branches[last].First-1], tokens[i])
			last--
		case i == 0:
			tokens[i] = row(before, tokens[i])
		default:
			tokens[i] = row(tokens[i-1], tokens[i])
		}
	}
}
