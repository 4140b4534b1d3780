package train

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"slices"
	"time"

	"anneal/comm"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/model"
	"anneal/optim"
	"anneal/precision"
	"anneal/program"
	"anneal/schedule"
	"anneal/tensor"
)

// A Trainer holds a model in training and makes optimizer steps. A step does not allocate: all memory is in arenas
// laid out when the trainer is created.
type Trainer struct {
	Evaluator // the forward pass, and the memory shared with evaluation
	holding   // this rank's part of the model

	cfg       *config.Config
	footprint *Footprint
	policy    precision.Policy
	opt       optim.Optimizer
	sched     schedule.Schedule
	ramps     Ramps
	accum     int            // micro-batches per step of this rank's group
	outline   *model.Decoder // the whole model, without memory
	slots     []slot
	moves     moves

	scale        float64     // factor of the current step's gradients: the loss scale of fp16
	micros       []microSums // of the current step
	blockSquares float64     // Σ of the squared norms of its blocks' gradients

	squares device.Squares
	norms   paramNorms
	ratios  updateRatios
	rises   rises
	parts   [][]tensor.Tensor // by parameter: the gradients of its parts, for optimizers that work part by part
	normed  []*tensor.Tensor  // tensors of the gradient norm, kept so that no call allocates the list
	scratch *tensor.Arena     // of the optimizer: the tape's temporary memory, which is free during the update

	sources   []sourceLoss // of the step's batch, if its samples come from a mix
	progress  Position
	guard     Guard
	lossScale precision.LossScale
	robust    *robust        // nil without domain weights
	teacher   *model.Decoder // nil without distill.teacher

	first, second fingerprint // of a micro-batch that is replayed

	OnPhase func(Phase) // called when a phase of a step begins; may be nil

	// OnInstr is called when an instruction of a pipeline has ended, with the time it took; it may be nil. An
	// accelerator may still be computing then.
	OnInstr func(i program.Instr, began time.Time, took time.Duration)

	// On several ranks, Ask is called in every pass of a step and returns this rank's requests, as bits that the
	// caller defines. Heard holds the bits of all ranks and passes of the last step, combined. All ranks have the same
	// Heard, so they can act alike.
	Ask   func() uint64
	Heard uint64

	told   []byte    // this rank's message to the others
	blocks blockSums // if the noise is measured
	amax   []float64 // of its FP8 operands
}

// Position is the position of a run; checkpoints store it.
type Position struct {
	Step    int    `json:"step"`    // batches seen
	Updates int    `json:"updates"` // steps whose update was applied: Adam's t, and the position in the schedule
	Sample  uint64 `json:"sample"`  // next sample to read
	Tokens  int64  `json:"tokens"`
	Applied int64  `json:"applied_tokens"` // tokens of those steps: the position in schedules that count tokens
	Clipped int    `json:"clipped"`        // updates whose gradient exceeded train.clip
	Recent  uint64 `json:"clipped_recent"` // which of the last 64 updates did; bit 0 is the newest

	Noise NoiseScale `json:"noise_scale"`
}

// ClipRate returns the share of the updates so far whose gradient was clipped; NaN before the first.
func (p Position) ClipRate() float64 { return float64(p.Clipped) / float64(p.Updates) }

// ClipRateRecent is ClipRate of the last 64 updates.
func (p Position) ClipRateRecent() float64 {
	return float64(bits.OnesCount64(p.Recent)) / float64(min(p.Updates, 64))
}

// After returns the position after more steps with a portion's tokens, as far as ramps depend on it.
func (p Position) After(n Portion, steps int) Position {
	p.Step, p.Tokens = p.Step+steps, p.Tokens+int64(steps)*n.Tokens
	return p
}

// updated counts an update.
func (p *Position) updated(tokens int64, clipped bool) {
	p.Updates++
	p.Applied += tokens
	p.Recent <<= 1
	if clipped {
		p.Clipped++
		p.Recent |= 1
	}
}

// New allocates the memory of a run and initialises the model. The configuration must be valid, with its derived values
// and the size of the vocabulary.
func New(cfg *config.Config, dev device.Device) (*Trainer, error) {
	return NewRank(cfg, dev, comm.Alone{})
}

// NewRank is New for a rank of a group. All ranks make the same calls of the trainer's methods.
func NewRank(cfg *config.Config, dev device.Device, world comm.Comm) (t *Trainer, err error) {
	f, err := MeasureRank(cfg, dev, world)
	if err != nil {
		return nil, err
	}
	if err := f.Refuse(dev.FreeMemory()); err != nil {
		return nil, err
	}
	arenas, err := newArenas(dev, f.Arenas)
	if err != nil {
		return nil, err
	}
	var moves moves
	defer func() {
		if err != nil {
			moves.close()
			closeArenas(arenas)
		}
	}()
	inFile, err := moves.open(cfg, dev, f)
	if err != nil {
		return nil, err
	}
	arena := func(name string) *tensor.Arena { return arenaOf(slices.Concat(arenas, inFile), name) }
	c, policy, rows := f.Model, f.Policy, cfg.Train.MicroBatch
	mesh, err := meshOf(cfg, world)
	if err != nil {
		return nil, err
	}
	opt := overPeers(ruleOf(cfg), mesh)
	m, holding, err := lay(cfg, c, policy, opt, world, mesh, dev, arena)
	if err != nil {
		return nil, err
	}
	t = &Trainer{
		holding: holding, cfg: cfg, footprint: f, policy: policy, sched: NewSchedule(cfg), guard: newGuard(cfg.Guard),
		opt: opt, scratch: arena(Scratch), ramps: NewRamps(cfg), lossScale: newLossScale(policy, cfg.LossScale),
		outline: model.Outline(c, policy),
	}
	moves.start(t.offload, layInputs(f, arena))
	t.moves = moves
	if t.teacher, err = layTeacher(cfg, f, dev, arena); err != nil {
		return nil, err
	}
	t.norms, t.rises = newParamNorms(t.outline), newRises(c.Layers)
	t.ratios = updateRatios{
		room: arena(Activations), moved: newParamNorms(t.outline), weight: newParamNorms(t.outline),
	}
	t.slots = laySlots(f, cfg, mesh, dev, arena)
	t.Evaluator = Evaluator{
		dev: dev, model: m, world: mesh.World, mesh: mesh, between: alone{}, slot: &t.slots[0],
		rows: rows, length: c.Context, documents: cfg.Data.DocumentMask, arenas: arenas,
		Answers: cfg.Train.EvalAnswers,
	}
	if t.moves.inputs != nil {
		t.tape.Inputs = t.moves.inputs
	}
	t.layChunks()
	t.pipe = layPipeline(mesh, cfg, streams(cfg, f, t.batch), f, arena)
	for _, p := range t.model.Params() {
		t.parts = append(t.parts, gradientParts(opt, p))
	}
	t.normed = make([]*tensor.Tensor, 0, 3*len(t.updated))
	if t.shard == nil {
		t.fold.measure = t.measureBlock
		t.model.Init(cfg.Seed)
	} else {
		t.between, t.shard.Folding = t.shard, t.measureTerms
		if err := t.shard.Init(cfg.Seed); err != nil {
			return nil, errors.Join(err, Wait(dev))
		}
	}
	t.StartAverage()
	t.outer.start(dev)
	return t, nil
}

// Close frees the run's memory, but not the device.
func (t *Trainer) Close() {
	t.moves.close()
	t.Evaluator.Close()
}

// Step reads the next batch, computes the gradient of its mean loss and applies one update. If ctx ends between two
// micro-batches, Step undoes the step and returns ctx's error.
//
// This is the one place where techniques combine, in this order:
//
//	weigh the domains, with group DRO
//	ask the teacher about each micro-batch (distill.go)
//	fold the micro-batches' gradients in FP32 (fold.go), replay the first if it is due, set FP8 scales
//	global norm, divided by the loss scale of fp16
//	reject the update: no target, an overflow of fp16, the guard
//	clip, measure the gradient noise
//	update: decay first, then the optimizer's step, then rounding of weights without masters
//	average the weights, update the curvature
//	meet the other groups, if there are some and it is time (outer.go), and average the weights then
//
// Gradients are sums and are divided once, by the number of targets of the whole batch, so that every token has the
// same weight. A step whose update is rejected has read its batch, but neither the optimizer's t nor the schedule
// counts it.
func (t *Trainer) Step(ctx context.Context, src dataset.Source) (Event, error) {
	t.Heard = 0
	part := t.ramps.Next(t.progress)
	t.accum, t.length = part.Micro/t.outer.groups(), part.Length
	if t.outer != nil {
		ctx = context.WithoutCancel(ctx) // other ranks make this step, too
	}
	from := t.progress.Sample
	if t.robust != nil {
		if err := t.robust.weigh(ctx, t, src, from); err != nil {
			return Event{}, err
		}
	}
	t.beginFP8Step()
	sums, err := t.gradient(ctx, src, from)
	if err != nil {
		t.undoFP8Step()
		return Event{}, err
	}
	e, err := t.conclude(src, from, part, sums)
	if err == nil && t.outer != nil {
		err = t.endGroupStep(&e)
	}
	t.endEvent(&e)
	return e, err
}

// conclude is the rest of a step, once its gradient is computed. sums are the sums of the batch at from, part is its
// portion.
func (t *Trainer) conclude(src dataset.Source, from uint64, part Portion, sums batchSums) (e Event, err error) {
	t.enter(Updating)
	norm := math.Sqrt(sums.squares)
	if err := Wait(t.dev); err != nil { // no result of the step may be used before this
		return Event{}, err
	}
	t.endFP8Step()
	t.progress.Step++
	t.progress.Sample += uint64(part.Micro * t.rows)
	t.progress.Tokens += part.Tokens
	e = t.stepEvent(part, sums)
	targets := float64(sums.targets)
	if targets == 0 {
		e.Skipped = true
		return e, nil
	}
	e.Loss, e.GradNorm = sums.loss/targets, norm/targets
	e.LR = t.cfg.Optimizer.LR * part.Rate * t.sched.Factor(part.Position)
	if z := t.cfg.Train.ZLoss; z != 0 {
		e.ZLoss = z * sums.squaredLogZ / targets
	}
	if t.teacher != nil {
		e.TeacherKL = sums.divergence / targets
	}
	if n := float64(sums.routing.Tokens); n > 0 {
		// rounded, because stages of a pipeline add the sums of their layers in another order
		e.RouterBalance = float64(float32(sums.routing.Balance / n))
		e.RouterZLoss = float64(float32(sums.routing.ZLoss / n))
	}
	if t.overflowed(e.Loss, e.GradNorm) || !t.guard.accept(t.progress.Step, e.Loss, e.GradNorm) {
		e.Skipped = true
		return e, nil
	}
	clip := optim.ClipScale(e.GradNorm, t.cfg.Train.Clip)
	e.Clipped = clip < 1
	t.progress.updated(part.Tokens, e.Clipped)
	if t.robust != nil {
		t.robust.commit()
	}
	t.observeNorms(&e, targets)
	e.NoiseScale = t.measureNoise(sums, e.GradNorm)
	if err := t.update(e.LR, clip/(targets*t.tape.LossScale)); err != nil { // gradients are those of the scaled sum
		return e, err
	}
	if t.ratios.due {
		if e.UpdateRatios, err = t.reportRatios(); err != nil {
			return e, err
		}
	}
	if t.outer == nil { // with groups, the average is taken after they have met
		t.average.update(t.progress.Updates, t.updated, t.dev)
	}
	if e.WinRate, err = t.winRate(); err != nil {
		return e, err
	}
	return e, t.curvature(src, from)
}
