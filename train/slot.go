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

// A slot holds a micro-batch between its forward and its backward pass. A rank of a pipeline has several slots, each
// with its own memory for what backward needs. Temporary memory is empty between passes, so slots share it.
type slot struct {
	tape  *autograd.Tape
	data  dataset.Batch // the micro-batch in the loader's form
	batch *model.Batch  // the micro-batch in the model's form
	full  *model.Batch  // with context parallelism, the whole rows of batch, on the host; else batch itself
	marks []int         // by unit of the current chunk: where it begins on the tape

	micro, chunk int // in a pipeline: the micro-batch and chunk in the slot
	busy         bool
	in, out      *autograd.Var   // the stream at the start and the end of the chunk
	sent         []comm.Transfer // transfers that read the slot's memory
}

// laySlots allocates the slots of a rank.
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

// layBatch allocates a micro-batch in the model's form, and its whole rows on the host if the micro-batch is a part of
// them.
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
