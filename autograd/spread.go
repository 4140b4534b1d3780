package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// columns is a range of a matrix's columns: count columns from first on.
type columns struct{ first, count int }

// A cut says which columns of a matrix each rank works on: those of its heads in Ulysses.
type cut struct {
	what  matrix
	heads device.Heads
	ranks int
}

// matrix says what the columns of a matrix are.
type matrix uint8

const (
	queries    matrix = iota // [N, H·E]
	projection               // [N, (H+2K)·E]
	gating                   // [N, K]
)

// of returns the columns of a rank; unused ranges at the end are empty.
func (c cut) of(rank int) (list [3]columns) {
	h, s := c.heads, shareOf(c.heads, rank, c.ranks)
	switch c.what {
	case queries:
		list[0] = columns{s.q * h.Size, s.Q * h.Size}
	case projection:
		list[0] = columns{s.q * h.Size, s.Q * h.Size}
		list[1] = columns{(h.Q + s.kv) * h.Size, s.KV * h.Size}
		list[2] = columns{(h.Q + h.KV + s.kv) * h.Size, s.KV * h.Size}
	case gating:
		width := h.GateCols() / h.KV
		list[0] = columns{s.kv * width, s.KV * width}
	}
	return list
}

// width returns the number of columns of a rank.
func (c cut) width(rank int) int {
	n := 0
	for _, part := range c.of(rank) {
		n += part.count
	}
	return n
}

// spread turns src, all columns of this rank's tokens [N/C, D], into dst, this rank's columns of all tokens [N, D'],
// in the order of whole rows. dst may use the memory of src.
func (t *Tape) spread(dst, src *tensor.Tensor, c cut, z Zigzag) {
	mark := t.temp.Mark()
	me, own := z.Rank, src.Rows()
	out, room := t.parcels(z.Ranks)
	for r := range out {
		out[r] = t.temp.New(src.DType(), own, c.width(r))
		t.pack(&out[r], src, c.of(r))
		if r != me && !t.Context.InPlace() {
			room[r] = t.temp.New(src.DType(), own, c.width(me))
		}
	}
	for r, part := range t.Context.Exchange(out, room) {
		t.moveChunks(dst, t.ref(part), z, r, true)
	}
	t.Context.Release()
	t.temp.Release(mark)
}

// collect is the inverse of spread: src [N, D'] has this rank's columns of all tokens, and dst [N/C, D] receives all
// columns of this rank's tokens. Columns that several ranks have are added, in rank order. dst may use the memory of
// src.
func (t *Tape) collect(dst, src *tensor.Tensor, c cut, z Zigzag) {
	mark := t.temp.Mark()
	me, own := z.Rank, dst.Rows()
	out, room := t.parcels(z.Ranks)
	for r := range out {
		out[r] = t.temp.New(src.DType(), own, c.width(me))
		t.moveChunks(&out[r], src, z, r, false)
		if r != me && !t.Context.InPlace() {
			room[r] = t.temp.New(src.DType(), own, c.width(r))
		}
	}
	for r, part := range t.Context.Exchange(out, room) {
		in, list, before := t.ref(part), c.of(r), [3]columns{}
		if r > 0 {
			before = c.of(r - 1)
		}
		at := 0
		for i, to := range list {
			if to.count == 0 {
				break
			}
			t.Device.CopyRuns(dst, in, device.Runs{
				Count: 1, Rows: own, Cols: to.count,
				To: device.Place{Col: to.first}, From: device.Place{Col: at},
				Add: before[i] == to,
			})
			at += to.count
		}
	}
	t.Context.Release()
	t.temp.Release(mark)
}

// parcels returns two lists of zero tensors, one for each peer.
func (t *Tape) parcels(ranks int) (out, room []tensor.Tensor) {
	for len(t.parcel) < 2*ranks {
		t.parcel = append(t.parcel, tensor.Tensor{})
	}
	clear(t.parcel)
	return t.parcel[:ranks], t.parcel[ranks : 2*ranks]
}

// pack copies a list of columns of src, side by side, to dst.
func (t *Tape) pack(dst, src *tensor.Tensor, list [3]columns) {
	at := 0
	for _, c := range list {
		if c.count == 0 {
			break
		}
		t.Device.CopyRuns(dst, src, device.Runs{
			Count: 1, Rows: src.Rows(), Cols: c.count,
			To: device.Place{Col: at}, From: device.Place{Col: c.first},
		})
		at += c.count
	}
}

// moveChunks copies the chunks of rank r between a matrix of whole rows [N, D] and a matrix of its tokens [N/C, D]: to
// the whole rows if join is set, else from them.
func (t *Tape) moveChunks(dst, src *tensor.Tensor, z Zigzag, r int, join bool) {
	size := z.Chunk()
	for i, chunk := range z.of(r) {
		runs := device.Runs{
			Rows: size, Cols: dst.Cols(),
			To:   device.Place{Row: chunk * size, Step: z.Len},
			From: device.Place{Row: i * size, Step: 2 * size},
		}
		if !join {
			runs.To, runs.From = runs.From, runs.To
		}
		runs.Count = max(dst.Rows(), src.Rows()) / z.Len
		t.Device.CopyRuns(dst, src, runs)
	}
}
