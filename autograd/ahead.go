package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Ahead returns targets k tokens later.
func (t *Tape) Ahead(targets *tensor.Tensor, seq *Sequence, k int) (later, losses *tensor.Tensor) {
	n, size := targets.Len(), targets.Bytes()
	if len(t.pairs) < 2*size {
		t.pairs = make([]byte, 2*size)
	}
	t.Device.Read(t.pairs[:size], targets)
	t.Device.Read(t.pairs[size:2*size], &seq.Pos)
	tokens, positions := tensor.View(tensor.I32, t.pairs[:size], n), tensor.View(tensor.I32, t.pairs[size:2*size], n)
	list, pos := tokens.I32(), positions.I32()
	for i := range list {
		if i+k < n && pos[i+k] == pos[i]+int32(k) {
			list[i] = list[i+k]
		} else {
			list[i] = device.Ignored
		}
	}
	out := t.ref(t.keep.New(tensor.I32, n))
	t.Device.Write(out, t.pairs[:size])
	return out, t.ref(t.keep.New(t.Types.Stat, n))
}
