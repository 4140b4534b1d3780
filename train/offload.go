package train

import (
	"anneal/device"
	"anneal/optim"
	"anneal/tensor"
)

// offload keeps the optimizer state in a file instead of memory (memory.offload = optimizer), as ZeRO-Infinity does
// (Rajbhandari et al. 2021, arXiv 2104.07857). The parameters are cut into pieces, which are updated one after the
// other. Two windows in memory hold the state of two pieces, so that the disk transfers one while the processor
// updates the other:
//
//	window 0   read 0 │ update 0 │ write 0, read 2 │ update 2 │ …
//	window 1            read 1   │ update 1        │ write 1, read 3 │ …
//
// A piece has 2²⁰ elements if the optimizer updates each element by itself, as AdamW does. Otherwise it is a whole
// parameter. Neither the cutting nor the file changes a number: the run has the same bits as one without a file.
//
// Memory: two windows, each as large as the largest state of a piece; with AdamW 16 MiB for both. Traffic: each step
// reads and writes the whole state once. The operating system caches the file in free memory and writes later. No
// update can begin before the norm of all gradients is known, so a disk that is slower than the updates makes steps
// longer. Off by default: it does not help if the state fits in memory, and costs most in steps of few tokens.
type offload struct {
	mover
	first  []int         // by parameter: number of its first piece; the last element is the number of pieces
	pieces []updated     // with state in a window
	homes  []optim.State // of pieces, in the file
}

// offloadedState is the name of the arena in the file.
const offloadedState = "offloaded optimizer state"

// offloadPiece is the number of elements of a piece if the optimizer updates each element by itself.
const offloadPiece = 64 * device.Stretch

// layoutOffload cuts the updated parameters of list into pieces and allocates the windows.
func layoutOffload(opt optim.Optimizer, windows *tensor.Arena, list []updated) *offload {
	o := &offload{first: []int{0}}
	for i := range list {
		o.cut(opt, &list[i])
		o.first = append(o.first, len(o.pieces))
	}
	for w := range 2 {
		size := o.layWindow(opt, tensor.NewMeasure("window"), w)
		o.layWindow(opt, windows.Part(size), w)
	}
	return o
}

// layWindow places the state of every second piece, from number first on, in the same window, and returns the window's
// size.
func (o *offload) layWindow(opt optim.Optimizer, a *tensor.Arena, first int) int {
	for k := first; k < len(o.pieces); k += 2 {
		a.Release(0)
		o.pieces[k].state = opt.Layout(a, o.pieces[k].master)
	}
	return a.Peak()
}

// cut adds the pieces of u.
func (o *offload) cut(opt optim.Optimizer, u *updated) {
	if u.Frozen {
		return
	}
	if optim.Divide(opt, u.Param) != optim.Elements {
		o.pieces, o.homes = append(o.pieces, *u), append(o.homes, u.state)
		return
	}
	for from, n := 0, u.Value.Len(); from < n; from += offloadPiece {
		to := min(from+offloadPiece, n)
		p, home := *u, make(optim.State, len(u.state))
		p.Param = u.Piece(from, to)
		p.master = masterOf(p.Param)
		for i, e := range u.state {
			flat := e.Reshape(e.Len())
			home[i] = e
			home[i].Tensor = flat.Slice(from/e.Every, (to+e.Every-1)/e.Every)
		}
		o.pieces, o.homes = append(o.pieces, p), append(o.homes, home)
	}
}

// largestState returns the bytes of the largest tensor of state.
func largestState(list []updated) (n int64) {
	for i := range list {
		for k := range list[i].state {
			n = max(n, int64(list[i].state[k].Bytes()))
		}
	}
	return n
}

// steps lists the pieces in the order of their updates.
func (h *holding) steps() []updated {
	if h.offload != nil {
		return h.offload.pieces
	}
	return h.updated
}

func (o *offload) move(x transfer) {
	if x.write >= 0 {
		state := o.pieces[x.write].state
		for i := range state {
			o.file.Write(&o.homes[x.write][i].Tensor, state[i].Raw())
		}
	}
	if x.read >= 0 {
		state := o.pieces[x.read].state
		for i := range state {
			o.file.Read(state[i].Raw(), &o.homes[x.read][i].Tensor)
		}
	}
}

// begin fills the windows for an update.
func (o *offload) begin() {
	if o == nil || o.idle() {
		return
	}
	for k := range min(2, len(o.pieces)) {
		o.work <- transfer{window: k, write: -1, read: k}
	}
}

// await waits until the state of piece k is in its window.
func (o *offload) await(k int) {
	if !o.idle() {
		<-o.done[k%2]
	}
}

// release writes the state of piece k to the file and starts to fill the window again.
func (o *offload) release(k int) {
	if o == nil || o.idle() {
		return
	}
	next := k + 2
	if next >= len(o.pieces) {
		next = -1
	}
	o.work <- transfer{k % 2, k, next}
}

// end waits until all state is in the file.
func (o *offload) end() error {
	if o == nil || o.idle() {
		return nil
	}
	for k := range min(2, len(o.pieces)) {
		<-o.done[k]
	}
	return o.failure()
}
