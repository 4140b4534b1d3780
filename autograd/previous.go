package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Previous returns, for each token of ids [N] (I32), what row says of the token before it and of itself: [N] I32, valid
// until Reset. It is device.Elsewhere for the first token of a document. The token before a batch that continues a
// sequence is Cache.Before. The host computes it, and a device apart from it waits.
func (t *Tape) Previous(ids *tensor.Tensor, seq *Sequence, row func(before, id int32) int32) *tensor.Tensor {
	n, size := ids.Len(), ids.Bytes()
	if len(t.pairs) < 2*size {
		t.pairs = make([]byte, 2*size)
	}
	t.Device.Read(t.pairs[:size], ids)
	t.Device.Read(t.pairs[size:2*size], &seq.Pos)
	tokens, positions := tensor.View(tensor.I32, t.pairs[:size], n), tensor.View(tensor.I32, t.pairs[size:2*size], n)
	list, pos := tokens.I32(), positions.I32()
	if seq.Caches == nil {
		previous(list, pos, 0, row)
	}
	for _, c := range seq.Caches {
		previous(list[:c.Tokens], pos[:c.Tokens], c.Before, row)
		list, pos = list[c.Tokens:], pos[c.Tokens:]
	}
	out := t.ref(t.keep.New(tensor.I32, n))
	t.Device.Write(out, t.pairs[:size])
	return out
}

// previous replaces tokens by what row says of them, from the last one down, so that those before are still there.
func previous(tokens, pos []int32, before int32, row func(before, id int32) int32) {
	for i := len(tokens) - 1; i >= 0; i-- {
		switch {
		case pos[i] == 0:
			tokens[i] = device.Elsewhere
		case i == 0:
			tokens[i] = row(before, tokens[i])
		default:
			tokens[i] = row(tokens[i-1], tokens[i])
		}
	}
}
