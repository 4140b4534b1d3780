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
	full  *model.Batch  // with context parallelism, the rows of which batch has a part, on the host; else batch
	marks []int         // by unit in hand: where on the tape it begins

	micro, chunk int // of a pipeline: whose it is
	busy         bool
	in, out      *autograd.Var   // the stream where it enters and where it leaves
	sent         []comm.Transfer // that read its memory
}

// laySlots gives the slots of a rank their memory.
func laySlots(f *Footprint, cfg *config.Config, mesh *parallel.Mesh, dev device.Device,
	arena func(string) *tensor.Arena) []slot {
	list := make([]slot, f.Slots)
	layers := parallel.NewPeers("what ranks that share layers exchange", mesh.Peers)
	rows := parallel.NewPeers("what ranks that share rows exchange", mesh.Sequence)
	for i := range list {
		s := &list[i]
		keep := arena(Activations)
		if f.Slots > 1 {
			keep = keep.Part(f.slotBytes)
		}
		s.tape = autograd.NewTape(dev, f.Policy.Types(), keep, arena(Scratch))
		s.tape.Tensor, s.tape.Sequence = layers, cfg.Parallel.Sequence
		s.tape.Context, s.tape.Ring = rows, cfg.Parallel.Attention == "ring"
		s.batch, s.full = layBatch(f, cfg, mesh, arena(Batch))
		s.batch.ZLoss = cfg.Train.ZLoss
	}
	return list
}

// layBatch allocates a micro-batch as the model reads it, and its whole rows on the host, of which it may have a part.
func layBatch(f *Footprint, cfg *config.Config, mesh *parallel.Mesh, a *tensor.Arena) (b, whole *model.Batch) {
	rows, length := cfg.Train.MicroBatch, f.Model.Context
	if mesh.Context == 1 {
		b = model.NewBatch(a, f.Policy, rows, length)
		b.Teacher = layLessons(cfg, f.Policy, a, rows*length)
		return b, b
	}
	z := autograd.Zigzag{Rank: mesh.Chunk, Ranks: mesh.Context, Len: length}
	b = model.NewBatchPart(a, f.Policy, f.Model, rows, z, cfg.Parallel.Attention == "ring")
	if !a.Backed() && !a.Apart() {
		return b, nil // nobody fills it
	}
	n := rows * length
	whole = &model.Batch{T: length, Host: model.HostBatch{
		Tokens: make([]int32, n), Targets: make([]int32, n), Start: make([]int32, n), Pos: make([]int32, n),
	}}
	return b, whole
}
