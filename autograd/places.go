package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// The places of the chunks of ring attention in tensors.

// seen returns how many tokens of rank of the rank by sees: those of the first chunk if by is the later rank, those of
// both chunks otherwise.
func (r *ring) seen(of, by int) int {
	if of < by {
		return r.rows * r.Chunk()
	}
	return 2 * r.rows * r.Chunk()
}

// own, packed and in return the place of a rank's chunk i among its tokens, of chunk i in a message, and of a chunk in
// a frame.
func (r *ring) own(i, col int) device.Place {
	return device.Place{Row: i * r.Chunk(), Step: 2 * r.Chunk(), Col: col}
}

func (r *ring) packed(i int) device.Place {
	return device.Place{Row: i * r.rows * r.Chunk(), Step: r.Chunk()}
}

func (r *ring) in(f *frame, chunk, col int) device.Place {
	return device.Place{Row: f.at(chunk), Step: f.len(), Col: col}
}

// move copies a chunk of every row.
func (r *ring) move(dst, src *tensor.Tensor, to, from device.Place, cols int, add bool) {
	r.Device.CopyRuns(dst, src, device.Runs{Count: r.rows, Rows: r.Chunk(), Cols: cols, To: to, From: from, Add: add})
}

// index returns whether a chunk is its rank's first (0) or second (1).
func (r *ring) index(chunk int) int {
	if chunk < r.Ranks {
		return 0
	}
	return 1
}

// whole reports whether a frame consists of exactly this rank's tokens.
func (r *ring) whole(f *frame) bool { return len(f.keys) == 2 && len(f.queries) == 2 }
