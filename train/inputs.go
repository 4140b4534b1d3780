package train

import (
	"anneal/tensor"
)

// inputs keeps the inputs of recomputed segments in a file instead of memory (memory.offload = checkpoints), as
// ZeRO-Infinity does (Rajbhandari et al. 2021, arXiv 2104.07857). Two windows in memory hold two inputs, so that the
// disk transfers one while the processor computes from the other:
//
//	forward    run 0, write 0 │ run 1, write 1 │ run 2, write 2 │ …
//	backward   … │ rerun 3, read 2 │ rerun 2, read 1 │ rerun 1, read 0 │ rerun 0
//
// The last two inputs are still in the windows when backward begins. A segment is rerun in its window, whose contents
// it overwrites.
//
// Memory: two inputs [N, D] instead of one for each segment. Traffic: each input is written and read once, 4 bytes per
// number (2 with memory.recompute_inputs = bf16). Forward needs about 24·N·D² operations for a layer of width D, whose
// input has 4·N·D bytes, so a disk keeps up if it writes a byte in the time of 6·D operations. Off by default. The
// input of a layer takes as much memory as its weights and gradients only if a micro-batch has 24·D tokens or more, so
// this helps with long rows. With short rows, use a smaller micro-batch instead.
type inputs struct {
	mover
	windows [2]*tensor.Arena
	values  [2]tensor.Tensor // contents of the windows
	holds   [2]int           // numbers of the inputs in the windows
	moving  [2]bool          // whether a transfer is in progress
	homes   []tensor.Tensor  // places of all inputs in the file
	places  [2]tensor.Tensor // by window: the element of homes that its transfer uses
	kept    int              // inputs
	most    int              // of kept
}

// offloadedInputs is the name of the arena in the file.
const offloadedInputs = "offloaded segment inputs"

// layInputs allocates the windows in memory, and room for all inputs in a file; nil if no inputs are in a file.
func layInputs(f *Footprint, arena func(string) *tensor.Arena) *inputs {
	if f.OffloadedInputs == 0 {
		return nil
	}
	x := &inputs{}
	for w := range x.windows {
		x.windows[w] = arena(SegmentInputs).Part(int(f.largestInput))
	}
	for range f.OffloadedInputs / f.largestInput {
		x.homes = append(x.homes, arena(offloadedInputs).New(tensor.U8, int(f.largestInput)))
	}
	return x
}

// Reset implements autograd.SegmentInputs.
func (x *inputs) Reset() { x.kept = 0 }

// New implements autograd.SegmentInputs.
func (x *inputs) New(format tensor.DType, shape []int) tensor.Tensor {
	w := x.kept % 2
	x.await(w)
	x.windows[w].Release(0)
	x.values[w] = x.windows[w].New(format, shape...)
	return x.values[w]
}

// Keep implements autograd.SegmentInputs.
func (x *inputs) Keep() {
	k, w := x.kept, x.kept%2
	x.holds[w] = k
	x.ask(k, transfer{window: w, write: k, read: -1})
	x.kept++
	x.most = max(x.most, x.kept)
}

// Last implements autograd.SegmentInputs.
func (x *inputs) Last() {
	x.kept--
	k := x.kept
	x.fetch(k)
	x.await(k % 2)
	if k > 0 {
		x.fetch(k - 1)
	}
}

// fetch starts reading input k, unless its window holds it.
func (x *inputs) fetch(k int) {
	w := k % 2
	if x.holds[w] == k {
		return
	}
	x.await(w)
	x.holds[w] = k
	x.ask(k, transfer{window: w, write: -1, read: k})
}

// ask starts a transfer of input k.
func (x *inputs) ask(k int, t transfer) {
	if x.idle() {
		return
	}
	x.places[t.window] = x.homes[k].Slice(0, x.values[t.window].Bytes())
	x.moving[t.window] = true
	x.work <- t
}

// await waits until no transfer uses a window.
func (x *inputs) await(w int) {
	if x.moving[w] {
		<-x.done[w]
		x.moving[w] = false
	}
}

func (x *inputs) move(t transfer) {
	place, window := &x.places[t.window], x.values[t.window].Raw()
	if t.write >= 0 {
		x.file.Write(place, window)
	} else {
		x.file.Read(window, place)
	}
}

// failed returns the first failure of the file.
func (x *inputs) failed() error {
	if x == nil {
		return nil
	}
	return x.failure()
}
