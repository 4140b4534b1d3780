package train

import (
	"anneal/autograd"
	"anneal/comm"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/model"
	"anneal/parallel"
	"anneal/tensor"
)

// A slot is where a micro-batch is between its forward and its backward pass. A rank of a pipeline has several, each
// with memory of its own for what backward needs; temporary memory is empty between them, so they share it.
type slot struct {
	tape  *autograd.Tape
	data  dataset.Batch // as the loader returns it
	batch *model.Batch  // as the model reads it
	marks []int         // by unit in hand: where on the tape it begins

	micro, chunk int // of a pipeline: whose it is
	busy         bool
	in, out      *autograd.Var   // the stream where it enters and where it leaves
	sent         []comm.Transfer // that read its memory
}

// laySlots gives the slots of a rank their memory.
func laySlots(f *Footprint, cfg *config.Config, mesh *parallel.Mesh, dev device.Device,
	arena func(string) *tensor.Arena) []slot {
	list, peers := make([]slot, f.Slots), parallel.NewPeers("what ranks that share layers exchange", mesh.Peers)
	for i := range list {
		b := model.NewBatch(arena(Batch), f.Policy, cfg.Train.MicroBatch, f.Model.Context)
		b.ZLoss = cfg.Train.ZLoss
		list[i] = slot{
			tape:  autograd.NewTape(dev, f.Policy.Types(), arena(Activations).Part(f.slotBytes), arena(Scratch)),
			batch: b,
		}
		list[i].tape.Tensor, list[i].tape.Sequence = peers, cfg.Parallel.Sequence
		if defers(cfg) {
			list[i].tape.Deferred = autograd.NewDeferred(arena(Deferred).Part(f.deferredBytes))
		}
	}
	return list
}
