package plan

import (
	"fmt"
	"slices"

	"anneal/config"
	"anneal/device"
	"anneal/internal/units"
	"anneal/model"
	"anneal/parallel"
	"anneal/train"
)

// A Plan is the forecast of a run on a machine.
type Plan struct {
	Parameters    int64
	Active        int64   // parameters that one token uses; fewer with experts
	FLOPsPerToken float64 // forward and backward, in sequences of the whole context
	Memory        Estimate
	Optimizer     train.OptimizerCost
	Offloaded     int64 // bytes of optimizer state in a file, of the fullest rank
	Inputs        int64 // bytes of the inputs of recomputed segments in a file, of the fullest rank
	Recompute     model.Layout
	Ranks         *Ranks // nil for a rank alone
	Time          *Time  // nil if unknown
	Untimed       string // why not

	Device    string // "avx512, 2 threads"
	Available int64  // bytes of the device's memory, 0 if unknown
	Fits      bool   // the run is not refused
}

// Item is one named part of a run's memory.
type Item struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Note  string `json:"note"` // a description, or how the size scales
}

// Estimate is the memory of a run, part by part.
type Estimate []Item

// Total sums the parts, in bytes.
func (e Estimate) Total() int64 {
	var n int64
	for _, i := range e {
		n += i.Bytes
	}
	return n
}

// Bytes returns the size of the named part.
func (e Estimate) Bytes(name string) int64 {
	i := slices.IndexFunc(e, func(i Item) bool { return i.Name == name })
	return e[i].Bytes
}

// For returns the plan of a valid, resolved configuration on a machine: an open device, or the known properties of
// one. The vocabulary must be known. Nothing is allocated.
//
// The memory is that of train.MeasureRun, which also decides whether a run is refused: with as many bytes as Memory's
// total it starts, with one byte less it does not. A copy of the state for checkpoints is added if there is room for
// it. With several ranks the memory is that of the fullest rank, as a process of its own.
func For(cfg *config.Config, machine device.Properties) (*Plan, error) {
	f, ranks, err := measure(cfg, machine)
	if err != nil {
		return nil, err
	}
	m := model.Outline(f.Model, f.Policy)
	p := &Plan{
		Parameters: m.Count(), Active: m.Active(),
		FLOPsPerToken: m.FLOPsPerToken(f.Model.Context) + train.TeacherFLOPs(cfg, f.Policy, f.Model.Context),
		Optimizer:     f.Optimizer, Offloaded: f.Offloaded, Inputs: f.OffloadedInputs,
		Recompute: f.Model.Recompute, Ranks: ranks,
		Device: describe(machine), Available: machine.FreeMemory(),
		Memory: itemise(f, m.Count(), cfg.Train.MicroBatch*f.Model.Context),
	}
	p.Fits = p.Available == 0 || p.Bytes() <= p.Available
	p.planCopy(f)
	return p, nil
}

// checkpointCopy names the item that a run can do without.
const checkpointCopy = "checkpoint copy"

func copyItem(bytes int64) Item {
	return Item{checkpointCopy, bytes, "weights and state, if memory allows"}
}

func (e Estimate) withoutCopy() Estimate {
	return slices.DeleteFunc(e, func(i Item) bool { return i.Name == checkpointCopy })
}

// planCopy adds the copy of the state for checkpoints, if memory allows it.
func (p *Plan) planCopy(f *train.Footprint) {
	copied, available := f.CheckpointCopy(), p.Available
	if r := p.Ranks; r != nil && r.Here {
		available /= int64(r.Count)
	}
	if f.Apart || !f.CopyFits(available) { // on other devices the copy is in host memory
		return
	}
	p.Memory = append(p.Memory, copyItem(copied))
	if p.Ranks != nil {
		p.Ranks.Together += p.Ranks.copies
		for i := range p.Ranks.Mesh {
			s := &p.Ranks.Mesh[i]
			s.Memory = append(s.Memory, copyItem(s.copy))
		}
	}
}

// measure returns the footprint of a run, or of its fullest rank if it has several.
func measure(cfg *config.Config, machine device.Properties) (*train.Footprint, *Ranks, error) {
	if cfg.Parallel.Ranks > 1 {
		return measureRanks(cfg, machine)
	}
	f, err := train.MeasureRun(cfg, machine)
	return f, nil, err
}

// Bytes returns the memory that this machine must have: for all ranks in one process if it has threads for them, else
// for one rank.
func (p *Plan) Bytes() int64 {
	if p.Ranks != nil && p.Ranks.Here {
		return p.Ranks.Together
	}
	return p.Memory.Total()
}

// describe names a machine as people read it.
func describe(machine device.Properties) string {
	switch n := machine.Threads(); n {
	case 0:
		return machine.Name()
	case 1:
		return machine.Kernels() + ", 1 thread"
	default:
		return fmt.Sprintf("%s, %d threads", machine.Kernels(), n)
	}
}

// itemise lists the parts of a footprint with notes. parameters is the number of parameters, tokens that of a
// micro-batch's tokens.
func itemise(f *train.Footprint, parameters int64, tokens int) Estimate {
	var e Estimate
	for _, p := range f.Parts() {
		i := Item{Name: p.Name, Bytes: p.Bytes}
		switch p.Name {
		case train.Parameters:
			i.Bytes -= f.Tables
			i.Note = perParameter(i.Bytes, parameters)
		case train.OptimizerState:
			i.Note = f.Optimizer.Name + ", " + perParameter(i.Bytes, parameters)
			if f.Offloaded > 0 {
				i.Note = fmt.Sprintf("two windows of %s in a file, %s (memory.offload)",
					units.FormatBytes(f.Offloaded), perParameter(f.Offloaded, parameters))
			}
		case train.Activations:
			i.Note = fmt.Sprintf("%.1f KiB per token of the micro-batch", float64(i.Bytes)/float64(tokens)/1024)
		case train.SegmentInputs:
			i.Note = fmt.Sprintf("two windows of %s in a file (memory.offload)", units.FormatBytes(f.OffloadedInputs))
		default:
			i.Note = notes[p.Name]
			if i.Note == "" {
				i.Note = perParameter(i.Bytes, parameters)
			}
		}
		e = append(e, i)
		if p.Name == train.OptimizerState {
			e = append(e, Item{"tables", f.Tables, "rotary positions, FP8 scales"})
		}
	}
	return e
}

// notes describe the parts that do not grow with the parameters alone.
var notes = map[string]string{
	train.Scratch:      "gradients of one block, logits of one chunk, or one update",
	train.Batch:        "tokens, targets, documents, losses",
	train.GradientFold: "gradients of micro-batches, before they are one sum",

	parallel.Slots:    "gradients of a few units, on their way to their owners",
	parallel.Received: "gradients that other ranks send",
	parallel.Gathered: "weights of two units, and of the embedding",

	train.TeacherWeights: "those of distill.teacher, which are not trained",

	train.WeightAverage: "a copy of the weights (average.ema)",
	train.OuterState:    "the weights from which groups began, and their momentum (parallel.outer)",

	train.ReceivedWeights: "weights of a unit that other groups send (parallel.outer)",

	train.Attention: "gradients of keys and values for each worker, pattern layouts",
	train.Products:  "packed blocks of matrix products for each worker",
	train.Process:   "binary, loader, stacks",
	train.MPI:       "the library and its buffers, where ranks are processes",

	train.CheckpointBuffer: "a tensor of optimizer state, on its way from the file",
}

func perParameter(bytes, parameters int64) string {
	return fmt.Sprintf("%.2f bytes per parameter", float64(bytes)/float64(parameters))
}
