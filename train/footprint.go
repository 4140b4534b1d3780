package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/autograd"
	"anneal/comm"
	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	"anneal/internal/units"
	"anneal/model"
	"anneal/optim"
	"anneal/parallel"
	"anneal/precision"
	"anneal/tensor"
)

// A Footprint is the memory of a run on a device, part by part, with the values that it follows from. The same
// footprint serves every purpose: plans print it, its total decides whether a run fits, and the trainer allocates its
// arenas.
type Footprint struct {
	Model     model.Config // with recomputation, and with the device's budget for logits
	Here      model.Part   // the part of the model on this rank
	Policy    precision.Policy
	Optimizer OptimizerCost

	Arenas []Part // what the trainer reserves
	Beside []Part // other contents of the device's memory
	Tables int64  // bytes of Parameters that are not trained: rotary positions, FP8 scales
	Apart  bool   // the parts are in a device's own memory, not in the host's
	Slots  int    // micro-batches, or chunks of them, that are between forward and backward at a time
	Sent   Sent   // bytes sent per micro-batch
	Stream int64  // bytes of a message between stages of a pipeline

	turns     int // messages in flight at most, in one direction of a pipeline
	deferred  int // micro-batches that wait for the gradients of their weights
	slotBytes int // bytes of the activations of one slot

	deferredKeep, deferredTemp int // bytes of the results of backward for one deferred micro-batch

	Offloaded int64 // bytes of optimizer state in a file instead of memory; 0 if it is in memory
	largest   int64 // bytes of the largest tensor there; a checkpoint reads one at a time

	OffloadedInputs int64 // bytes of the inputs of recomputed segments in a file; 0 if they are in memory
	largestInput    int64 // of a segment

	copied int64 // see CheckpointCopy

	teacher *model.Decoder // without memory; nil for none
}

// A Part is a named part of a run's memory.
type Part struct {
	Name  string
	Bytes int64
}

// The names of the parts. Those from Attention on are not arenas.
const (
	Parameters     = parallel.Parameters
	Gradients      = parallel.Gradients
	OptimizerState = "optimizer state" // in memory: all of it, or two windows if it is in a file
	Activations    = "activations"
	SegmentInputs  = "segment inputs" // two windows, if the inputs are in a file
	Scratch        = "scratch"
	Batch          = "batch"
	GradientFold   = parallel.Fold // single rank: gradients of micro-batches or blocks to be added
	WeightAverage  = "weight average"
	TeacherWeights = "teacher weights" // of distill.teacher

	OuterState      = "outer state"      // with parallel.outer: the weights that groups started from, and momentum
	ReceivedWeights = "received weights" // from other groups

	Deferred = "deferred products" // for the weight gradients that a pipeline defers

	Attention = "attention" // the kernels' scratch memory, and layouts of patterns
	Products  = "products"  // the scratch memory of matrix products
	Process   = "process"

	CheckpointBuffer = "checkpoint buffer" // for state in a file
	MPI              = "MPI"               // the library's memory, where ranks are processes
)

// arenas lists the names of the arenas in display order. Every run has the first ones.
var arenas = []string{
	Parameters, Gradients, OptimizerState, Activations, Scratch, Batch, SegmentInputs, parallel.MasterWeights,
	GradientFold, Deferred, parallel.Slots, parallel.Received, parallel.Gathered, WeightAverage, TeacherWeights,
	OuterState, ReceivedWeights,
}

const always = 6

// OptimizerCost is the memory and computation that an optimizer takes.
type OptimizerCost struct {
	Name           string
	State, Scratch int64   // bytes kept between updates, and needed during one
	FLOPs          float64 // of an update, if they matter compared with training
}

// processBytes estimates the host memory of a run beside its arenas and kernels: the binary, the Go heap, the loader,
// stacks.
const processBytes = 24 << 20

// mpiBytes estimates what an MPI library takes of a process, its code and buffers for shared memory. Open MPI 4.1 takes
// 10 to 19 MiB of each of 2 and 4 ranks on one machine.
const mpiBytes = 20 << 20

// maxMicroTokens is more tokens than any machine can hold activations for; beyond it even measuring is pointless.
const maxMicroTokens = 1 << 24

// MeasureRun returns the footprint of a valid, resolved configuration on a device. The vocabulary must be known.
// MeasureRun runs the model's and the optimizer's own code without allocating memory, so the sizes of the arenas are
// exact.
func MeasureRun(cfg *config.Config, dev device.Properties) (*Footprint, error) {
	return MeasureRank(cfg, dev, comm.Alone{})
}

// MeasureRank is MeasureRun for one rank of a group, such as a comm/absent one.
func MeasureRank(cfg *config.Config, dev device.Properties, world comm.Comm) (*Footprint, error) {
	policy, err := PolicyOf(cfg)
	if err != nil {
		return nil, err
	}
	if err := checkGroups(cfg, world.Size()); err != nil {
		return nil, err
	}
	c, rows := cfg.Model, cfg.Train.MicroBatch
	if c.Context < 1 || c.KVHeads < 1 || rows < 1 || c.Vocab < 1 {
		return nil, errors.New("the configuration is not complete: set model.vocab, and call Resolve, which derives " +
			"what it leaves out")
	}
	if rows > maxMicroTokens/c.Context {
		return nil, config.Problem{
			Key: "train.micro_batch",
			Message: fmt.Sprintf("train.micro_batch = %d sequences of %d tokens exceed the size of one forward pass",
				rows, c.Context),
			Try: fmt.Sprintf("train.micro_batch = %d or less", max(maxMicroTokens/c.Context, 1)),
		}
	}
	c.LogitBytes = dev.LogitBytes()
	if c.Recompute, err = recomputeLayout(cfg, c); err != nil {
		return nil, err
	}
	f := &Footprint{Model: c, Policy: policy, Apart: dev.Apart()}
	m, b, err := f.measureArenas(cfg, world)
	if err != nil {
		return nil, err
	}
	f.measureBeside(rows, dev, m, b)
	if world.Size() > 1 && !world.InPlace() && !f.Apart {
		f.Beside = append(f.Beside, Part{MPI, mpiBytes})
	}
	if f.Offloaded > 0 {
		f.Beside = append(f.Beside, Part{CheckpointBuffer, f.largest})
	}
	return f, nil
}

// measureArenas lists the trainer's arenas, parameters first, and measures the optimizer. It returns this rank's part
// of the model and of a batch, without memory.
func (f *Footprint) measureArenas(cfg *config.Config, world comm.Comm) (*model.Decoder, *model.Batch, error) {
	c := f.Model
	measures := map[string]*tensor.Arena{}
	arena := func(name string) *tensor.Arena {
		if measures[name] == nil {
			measures[name] = tensor.NewMeasure(name)
		}
		return measures[name]
	}
	rule := ruleOf(cfg)
	mesh, err := meshOf(cfg, absent.As(world))
	if err != nil {
		return nil, nil, err
	}
	teacher, err := layTeacher(cfg, f, device.Null{}, arena)
	if err != nil {
		return nil, nil, err
	}
	f.teacher = teacher
	outline := model.Outline(c, f.Policy)
	if err := checkTrained(cfg, outline); err != nil {
		return nil, nil, err
	}
	opt := overPeers(rule, mesh)
	m, h, err := lay(cfg, c, f.Policy, opt, absent.As(world), mesh, device.Null{}, arena)
	if err != nil {
		return nil, nil, err
	}
	if f.Here, err = part(cfg, c, mesh); err != nil {
		return nil, nil, err
	}
	if err = f.countSlots(cfg, mesh); err != nil {
		return nil, nil, err
	}
	f.copied = h.written(m, mesh.Sums.Rank())
	f.Optimizer = OptimizerCost{
		Name: cfg.Optimizer.Name, State: int64(arena(OptimizerState).Peak()),
		Scratch: int64(measureUpdates(opt, h.steps())),
	}
	if h.offload != nil {
		f.Offloaded = int64(arena(offloadedState).Peak())
		f.Optimizer.State = f.Offloaded
		f.largest = largestState(h.updated)
	}
	if muon, is := rule.(*optim.Muon); is {
		f.Optimizer.FLOPs = muon.FLOPs(m.Params())
		if err := checkMuon(cfg, muon, outline.Params()); err != nil {
			return nil, nil, err
		}
	}
	tables := tensor.NewMeasure("tables")
	model.Declare(c).AllocateTables(model.MemoryOf(device.Null{}, f.Policy, tables, nil))
	f.Tables = int64(tables.Peak())
	temp := f.measureSlot(cfg, m, mesh)
	arena(Scratch).New(tensor.U8, max(temp, int(f.Optimizer.Scratch)))
	if f.Slots == 1 {
		arena(Activations).New(tensor.U8, f.slotBytes)
	}
	layInputs(f, arena)
	slots := laySlots(f, cfg, mesh, device.Null{}, arena)
	stream := streams(cfg, f, slots[0].batch)
	for i := range stream {
		f.Stream += int64(stream[i].Bytes())
	}
	layPipeline(mesh, cfg, stream, f, arena)
	for _, name := range arenas {
		if a := measures[name]; a != nil && (a.Peak() > 0 || len(f.Arenas) < always) {
			f.Arenas = append(f.Arenas, Part{name, int64(a.Peak())})
		}
	}
	return m, slots[0].batch, nil
}

// measureSlot measures the memory that a slot keeps between forward and backward, and returns the bytes of temporary
// values. It runs the model's code on a device that does not compute.
func (f *Footprint) measureSlot(cfg *config.Config, m *model.Decoder, mesh *parallel.Mesh) (temp int) {
	kept, scratch := tensor.NewMeasure(Activations), tensor.NewMeasure(Scratch)
	e := Evaluator{dev: device.Null{}, model: m, mesh: mesh, between: alone{}, slot: &slot{
		tape: autograd.NewTape(device.Null{}, f.Policy.Types(), kept, scratch),
	}}
	e.batch, _ = layBatch(f, cfg, mesh, tensor.NewMeasure(Batch))
	var sent Sent
	e.tape.Context = parallel.NewPeers("", weighed{mesh.Sequence, &sent.Context})
	e.tape.Tensor = parallel.NewPeers("", weighed{mesh.Peers, &sent.Tensor})
	e.tape.Ring = cfg.Parallel.Attention == "ring"
	e.tape.Sequence = cfg.Parallel.Sequence
	inputs := &inputs{windows: [2]*tensor.Arena{tensor.NewMeasure(SegmentInputs), tensor.NewMeasure(SegmentInputs)}}
	if cfg.Memory.Offload.Has(config.Checkpoints) {
		e.tape.Inputs = inputs
	}
	laterKeep, laterTemp := tensor.NewMeasure(Deferred), tensor.NewMeasure(Deferred)
	if defers(cfg) {
		e.tape.Deferred = autograd.NewDeferred(laterKeep, laterTemp)
	}
	e.batch.Seq.Noise.Calm = true // a dropped branch would take no memory
	if f.teacher != nil {
		f.teacher.Teach(e.tape, e.batch)
	}
	e.layChunks()
	for _, grad := range []bool{true, false} {
		if !grad && cfg.Eval.Tasks != "" {
			e.batch.Branch()
		}
		for i := range e.chunks {
			e.measureChunk(&e.chunks[i], streams(cfg, f, e.batch), grad)
		}
		if grad {
			f.Sent = sent
		}
	}
	f.slotBytes = kept.Peak()
	f.largestInput = int64(max(inputs.windows[0].Peak(), inputs.windows[1].Peak()))
	f.OffloadedInputs = int64(inputs.most) * f.largestInput
	f.deferredKeep, f.deferredTemp = laterKeep.Peak(), laterTemp.Peak()
	return scratch.Peak()
}

// measureChunk runs a chunk forward, and backward with grad, on tensors without memory.
func (e *Evaluator) measureChunk(c *chunk, from []tensor.Tensor, grad bool) {
	e.tape.Reset(grad)
	if !c.enters {
		e.in = e.tape.Begin(&from[0])
		if len(from) > 1 {
			e.batch.Seq.First = e.tape.Begin(&from[1])
		}
	}
	out, err := e.forward(c, e.in, true, grad)
	if err != nil {
		panic(err) // without other ranks there is no rank to lose
	}
	switch e.out = out; {
	case c.leaves:
		h, err := e.finish(c, true, grad)
		if err != nil {
			panic(err)
		}
		e.model.HeadLoss(e.tape, h, e.batch)
	case grad:
		e.tape.SetGradient(out, &from[0])
		if len(from) > 1 {
			e.tape.SetGradient(e.batch.Seq.First, &from[1])
		}
	}
	if grad {
		e.tape.BackTo(0)
		units := e.model.UnitParams()
		for _, u := range c.units {
			e.model.SumPartial(e.tape, units[u])
		}
	}
	if e.tape.Deferred != nil {
		e.tape.RunDeferred()
	}
}

// measureBeside lists the device memory outside the arenas, for a part of a model and a batch.
func (f *Footprint) measureBeside(rows int, dev device.Properties, m *model.Decoder, b *model.Batch) {
	types := f.Policy.Types()
	layouts, kernels := m.AttentionBytes(dev, types, rows*f.Model.Context)
	if parts := b.Seq.Parts; parts != nil {
		layouts, kernels = m.AttentionPartBytes(dev, types, parts)
	}
	if f.teacher != nil {
		own, kernel := f.teacher.AttentionBytes(dev, types, rows*f.Model.Context)
		layouts, kernels = layouts+own, max(kernels, kernel)
	}
	process := int64(processBytes)
	if f.Apart {
		process = 0
	}
	f.Beside = []Part{
		{Attention, layouts + kernels},
		{Products, int64(dev.ProductScratch(f.Policy.Operand))},
		{Process, process},
	}
}

// Parts returns all parts in display order.
func (f *Footprint) Parts() []Part { return slices.Concat(f.Arenas, f.Beside) }

// Bytes returns the size of a part, 0 if the run has none.
func (f *Footprint) Bytes(name string) int64 {
	for _, p := range f.Parts() {
		if p.Name == name {
			return p.Bytes
		}
	}
	return 0
}

// Total returns the bytes that a run needs.
func (f *Footprint) Total() int64 {
	n := int64(0)
	for _, p := range f.Parts() {
		n += p.Bytes
	}
	return n
}

// CheckpointCopy returns the bytes of the copy of weights and state that lets training continue while a checkpoint is
// written. On several ranks it is a copy of the part that this rank writes. The copy is in host memory.
func (f *Footprint) CheckpointCopy() int64 { return f.copied }

// written returns how many bytes a rank of a group writes to a checkpoint.
func (h *holding) written(m *model.Decoder, rank int) int64 {
	bytes := 0.0 // sizes may be absurd
	for i, share := range h.shares() {
		u := &h.updated[i]
		n := float64(u.Value.Bytes())
		for k := range u.state {
			n += float64(u.state[k].Bytes())
		}
		if h.average.values != nil {
			n += float64(h.average.values[i].Bytes())
		}
		if h.outer != nil && h.outer.group() == 0 {
			n += float64(h.outer.starts[i].Bytes() + h.outer.momenta[i].Bytes())
		}
		bytes += n * share
	}
	if rank > 0 {
		return int64(bytes)
	}
	for _, x := range scaleTensors(m) {
		bytes += float64(x.Value.Bytes())
	}
	return int64(bytes)
}

// shares returns, for each parameter that this rank updates, the share that it writes: 1, unless other ranks update
// the same parameter.
func (h *holding) shares() []float64 {
	list := make([]float64, len(h.updated))
	for i := range list {
		list[i] = 1
	}
	if h.shard == nil {
		return list
	}
	clear(list)
	for i, o := range h.shard.Mine {
		if h.whole() {
			i = o.Piece.Param
		}
		list[i] += float64(o.Counted) / float64(h.updated[i].Grad.Len())
	}
	return list
}

// CopyFits reports whether the host's available bytes suffice for the run and CheckpointCopy; 0 means unknown and
// suffices.
func (f *Footprint) CopyFits(available int64) bool {
	run := f.Total()
	if f.Apart {
		run = processBytes
	}
	return available == 0 || run+f.CheckpointCopy() <= available
}

// Refuse returns an error if a run needs more than the available bytes; 0 means unknown.
func (f *Footprint) Refuse(available int64) error {
	if available == 0 || f.Total() <= available {
		return nil
	}
	var parts []string
	for _, p := range f.Parts() {
		parts = append(parts, p.Name+" "+units.FormatBytes(p.Bytes))
	}
	return &MemoryError{Need: f.Total(), Available: available, Detail: strings.Join(parts, ", ")}
}
