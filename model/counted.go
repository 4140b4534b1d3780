package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/tensor"
)

// counted is room for the numbers of a batch's tokens that have a target, for batches in which few have one.
type counted struct {
	rows, targets tensor.Tensor // [N/2] I32, rounded up
	place         tensor.Tensor // [N] I32
	host          [3][]int32    // of the same: the tensors' own elements if the host can access them
	used          [3]tensor.Tensor
}

func (c *counted) lay(a *tensor.Arena, n int) {
	half := (n + 1) / 2
	c.rows, c.targets, c.place = a.New(tensor.I32, half), a.New(tensor.I32, half), a.New(tensor.I32, n)
	switch {
	case a.Apart():
		c.host = [3][]int32{make([]int32, half), make([]int32, half), make([]int32, n)}
	case a.Backed():
		c.host = [3][]int32{c.rows.I32(), c.targets.I32(), c.place.I32()}
	}
}

// few reports whether at most half of the tokens have a target, and if so which ones. At least one has.
func (b *Batch) few(m device.Memory) (c autograd.Counted, few bool) {
	n := 0
	for _, target := range b.Host.Targets {
		if target != device.Ignored {
			n++
		}
	}
	if n == 0 || 2*n > len(b.Host.Targets) {
		return c, false
	}
	rows, targets, place := b.counted.host[0][:n], b.counted.host[1][:n], b.counted.host[2]
	n = 0
	for i, target := range b.Host.Targets {
		place[i] = device.Elsewhere
		if target != device.Ignored {
			rows[n], targets[n], place[i] = int32(i), target, int32(n)
			n++
		}
	}
	to := &b.counted.used
	*to = [3]tensor.Tensor{b.counted.rows.Slice(0, n), b.counted.targets.Slice(0, n), b.counted.place}
	if b.Tokens.Apart() {
		for i, from := range [][]int32{rows, targets, place} {
			m.Write(&to[i], tensor.Of(from).Raw())
		}
	}
	return autograd.Counted{Rows: &to[0], Targets: &to[1], Place: &to[2]}, true
}
