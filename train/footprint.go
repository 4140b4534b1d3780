package train

import (
	"fmt"
	"slices"
	"strings"

	"anneal/config"
	"anneal/device"
	"anneal/internal/units"
	"anneal/model"
	"anneal/optim"
	"anneal/precision"
)

// A Footprint is the memory of a run on a device, part by part, and what it follows from. There is one for all: plans
// print it, a run that does not fit is refused by its sum, and the trainer allocates its arenas.
type Footprint struct {
	Model     model.Config // with recomputation, and with the device's budget for logits
	Policy    precision.Policy
	Optimizer OptimizerCost

	Arenas []Part // what the trainer reserves
	Beside []Part // what else the device's memory holds
	Tables int64  // bytes of Parameters that are not trained: rotary positions, FP8 scales
	Apart  bool   // the parts are in a device's own memory, not in the host's
}

// A Part is a named part of a run's memory.
type Part struct {
	Name  string
	Bytes int64
}

// The names of the parts. All but the last three are arenas.
const (
	Parameters     = "parameters"
	Gradients      = "gradients"
	OptimizerState = "optimizer state"
	Activations    = "activations"
	Scratch        = "scratch"
	Batch          = "batch"
	GradientFold   = "gradient fold" // one micro-batch's gradients of tables and vectors, if a step has several
	WeightAverage  = "weight average"
	Attention      = "attention" // the kernels' scratch memory, and layouts of patterns
	Products       = "products"  // the scratch memory of matrix products
	Process        = "process"
)

// OptimizerCost is what an optimizer takes.
type OptimizerCost struct {
	Name           string
	State, Scratch int64   // bytes kept between updates, and needed during one
	FLOPs          float64 // of an update, if they matter compared with training
}

// processBytes estimates the host memory of a run beside its arenas and kernels: the binary, the Go heap, the loader,
// stacks.
const processBytes = 16 << 20

// maxMicroTokens is more tokens than any machine can hold activations for; beyond it even measuring is pointless.
const maxMicroTokens = 1 << 24

// MeasureRun returns the footprint of a valid, resolved configuration on a device, whose vocabulary must be known. It
// runs the model's and the optimizer's own code without allocating memory, so the arenas are exact.
func MeasureRun(cfg *config.Config, dev device.Properties) (*Footprint, error) {
	policy, err := PolicyOf(cfg)
	if err != nil {
		return nil, err
	}
	c, rows := cfg.Model, cfg.Train.MicroBatch
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
	if f.Optimizer, err = measureOptimizer(cfg, c, policy); err != nil {
		return nil, err
	}
	f.measureArenas(cfg)
	f.measureBeside(rows, dev)
	return f, nil
}

// measureArenas lists the trainer's arenas.
func (f *Footprint) measureArenas(cfg *config.Config) {
	c, rows := f.Model, cfg.Train.MicroBatch
	train, eval := model.Measure(c, f.Policy, rows, c.Context, true), model.Measure(c, f.Policy, rows, c.Context, false)
	f.Tables = max(int64(train.Params)-model.Outline(c, f.Policy).Bytes(), 0) // measures stop at absurd sizes
	f.Arenas = []Part{
		{Parameters, int64(train.Params)},
		{Gradients, int64(train.Grads)},
		{OptimizerState, f.Optimizer.State},
		{Activations, int64(max(train.Keep, eval.Keep))},
		{Scratch, max(int64(train.Temp), int64(eval.Temp), f.Optimizer.Scratch)},
		{Batch, int64(train.Batch)},
	}
	if room := foldBytes(cfg, c, f.Policy); room > 0 {
		f.Arenas = append(f.Arenas, Part{GradientFold, int64(room)})
	}
	if cfg.Average.EMA > 0 { // the same shapes and format as the gradients
		f.Arenas = append(f.Arenas, Part{WeightAverage, int64(train.Grads)})
	}
}

// measureBeside lists what a device holds beside the arenas.
func (f *Footprint) measureBeside(rows int, dev device.Properties) {
	c, storage := f.Model, f.Policy.Types().Activation
	layouts, kernels := model.Outline(c, f.Policy).AttentionBytes(dev, storage, rows*c.Context)
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

// Parts returns all parts in the order in which they are shown.
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

// CheckpointCopy returns the bytes of the copy of weights and state that allows training to go on while a checkpoint
// is written. The copy is in host memory.
func (f *Footprint) CheckpointCopy() int64 {
	return f.Bytes(Parameters) + f.Bytes(OptimizerState) + f.Bytes(WeightAverage)
}

// CopyFits reports whether the host's available bytes, if these are known, suffice for the run and CheckpointCopy.
func (f *Footprint) CopyFits(available int64) bool {
	run := f.Total()
	if f.Apart {
		run = processBytes
	}
	return available == 0 || run+f.CheckpointCopy() <= available
}

// Refuse returns an error if a run needs more than the available bytes, if these are known.
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

// measureOptimizer returns what the optimizer of a configuration takes for a model. It returns an error for an
// optimizer that has nothing to train.
func measureOptimizer(cfg *config.Config, c model.Config, policy precision.Policy) (OptimizerCost, error) {
	params, opt := model.Outline(c, policy).Params(), NewOptimizer(cfg.Optimizer)
	state, scratch := measureRounded(opt, params)
	cost := OptimizerCost{Name: cfg.Optimizer.Name, State: int64(state), Scratch: int64(scratch)}
	if muon, is := opt.(*optim.Muon); is {
		cost.FLOPs = muon.FLOPs(params)
		return cost, checkMuon(cfg, muon, params)
	}
	return cost, nil
}
