package train

import (
	"context"
	"math"

	"anneal/autograd"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/model"
	"anneal/optim"
	"anneal/precision"
	"anneal/schedule"
	"anneal/tensor"
)

// A Trainer holds a model in training and makes optimizer steps. A step does not allocate: all memory is in arenas
// laid out when the trainer is created.
type Trainer struct {
	Evaluator // the forward pass, and the memory shared with evaluation

	cfg       *config.Config
	footprint *Footprint
	policy    precision.Policy
	opt       optim.Optimizer
	sched     schedule.Schedule
	ramps     Ramps
	accum     int // micro-batches per step
	fold      fold
	marks     []int // where on the tape the units begin

	updated []updated // one per parameter
	squares device.Squares
	normed  []*tensor.Tensor // tensors of the gradient norm, kept so that no call allocates the list
	scratch *tensor.Arena    // of the optimizer: the tape's temporary memory, which is free during the update

	sources   []sourceLoss // of the step's batch, if its samples come from a mix
	average   average
	progress  Position
	guard     Guard
	lossScale precision.LossScale
	robust    *robust // nil without domain weights

	first, second fingerprint // of a micro-batch that is replayed

	OnPhase func(Phase) // called where a part of a step begins; may be nil
}

// Position is the position of a run; checkpoints store it.
type Position struct {
	Step    int    `json:"step"`    // batches seen
	Updates int    `json:"updates"` // steps whose update was applied: Adam's t, and the position in the schedule
	Sample  uint64 `json:"sample"`  // next sample to read
	Tokens  int64  `json:"tokens"`
	Applied int64  `json:"applied_tokens"` // tokens of those steps: the position in schedules that count tokens
	Clipped int    `json:"clipped"`        // updates whose gradient exceeded train.clip

	Noise NoiseScale `json:"noise_scale"`
}

// ClipRate returns the share of the updates so far whose gradient was clipped; NaN before the first.
func (p Position) ClipRate() float64 { return float64(p.Clipped) / float64(p.Updates) }

// New allocates the memory of a run and initialises the model. The configuration must be resolved and valid.
func New(cfg *config.Config, dev device.Device) (*Trainer, error) {
	f, err := MeasureRun(cfg, dev)
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
	arena := func(name string) *tensor.Arena { return arenaOf(arenas, name) }
	c, policy, rows := f.Model, f.Policy, cfg.Train.MicroBatch
	t := &Trainer{
		Evaluator: Evaluator{
			dev:   dev,
			model: model.New(c, model.MemoryOf(dev, policy, arena(Parameters), arena(Gradients))),
			tape:  autograd.NewTape(dev, policy.Types(), arena(Activations), arena(Scratch)),
			batch: model.NewBatch(arena(Batch), policy, rows, c.Context),
			rows:  rows, length: c.Context, documents: cfg.Data.DocumentMask, arenas: arenas,
		},
		cfg: cfg, footprint: f, policy: policy, sched: NewSchedule(cfg), guard: newGuard(cfg.Guard),
		opt: NewOptimizer(cfg.Optimizer), scratch: arena(Scratch),
		ramps: NewRamps(cfg), lossScale: newLossScale(policy, cfg.LossScale),
	}
	t.batch.ZLoss = cfg.Train.ZLoss
	t.model.Init(cfg.Seed)
	t.model.ScaleRates(updateRule(cfg.Optimizer))
	t.updated = layoutOptimizer(cfg.Optimizer, t.opt, arena(OptimizerState), t.model.Params())
	t.normed = make([]*tensor.Tensor, 0, len(t.updated))
	if a := arena(GradientFold); a != nil {
		t.fold = layoutFold(a, t.model.Params())
	}
	if a := arena(WeightAverage); a != nil {
		t.startAverage(a)
	}
	return t, nil
}

// Close frees the run's memory, but not the device.
func (t *Trainer) Close() { t.Evaluator.Close() }

// Step reads the next batch, computes the gradient of its mean loss and applies one update. If ctx ends between two
// micro-batches, the step is undone and ctx's error returned.
//
// This is the one place where techniques combine, in this order:
//
//	weigh the domains, with group DRO
//	fold the micro-batches' gradients in FP32 (fold.go), replay the first if it is due, set FP8 scales
//	global norm, divided by the loss scale of fp16
//	reject the update: no target, an overflow of fp16, the guard
//	clip, measure the gradient noise
//	update: decay first, then the optimizer's step, then rounding of weights without masters
//	average the weights, update the curvature
//
// Gradients are sums and are divided once, by the number of targets of the whole batch, so that every token has the
// same weight. A step whose update is rejected has read its batch, but neither the optimizer's t nor the schedule
// counts it.
func (t *Trainer) Step(ctx context.Context, src dataset.Source) (Event, error) {
	part := t.ramps.Next(t.progress)
	t.accum, t.length = part.Micro, part.Length
	from := t.progress.Sample
	if t.robust != nil {
		if err := t.robust.weigh(ctx, t, src, from); err != nil {
			return Event{}, err
		}
	}
	sums, err := t.gradient(ctx, src, from)
	if err != nil {
		return Event{}, err
	}
	e, err := t.conclude(src, from, part, sums)
	t.endEvent(&e)
	return e, err
}

// conclude is the rest of a step, once its gradient is there: sums are those of the batch at from, part its portion.
func (t *Trainer) conclude(src dataset.Source, from uint64, part Portion, sums batchSums) (Event, error) {
	t.enter(Updating)
	norm := math.Sqrt(t.squaredNorm())
	if err := Wait(t.dev); err != nil { // before any result of the step is used
		return Event{}, err
	}
	t.endFP8Step()
	t.progress.Step++
	t.progress.Sample += uint64(t.accum * t.rows)
	t.progress.Tokens += part.Tokens
	e := t.stepEvent(part, sums)
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
	if c := t.model.Config; c.Experts > 0 {
		n := float64(part.Tokens) * float64(c.Layers)
		e.RouterBalance, e.RouterZLoss = sums.routing.Balance/n, sums.routing.ZLoss/n
	}
	if t.overflowed(e.Loss, e.GradNorm) || !t.guard.accept(e.Loss, e.GradNorm) {
		e.Skipped = true
		return e, nil
	}
	t.progress.Updates++
	t.progress.Applied += part.Tokens
	if t.robust != nil {
		t.robust.commit()
	}
	clip := optim.ClipScale(e.GradNorm, t.cfg.Train.Clip)
	if e.Clipped = clip < 1; e.Clipped {
		t.progress.Clipped++
	}
	e.NoiseScale = t.measureNoise(sums, e.GradNorm)
	t.update(e.LR, clip/(targets*t.tape.LossScale)) // the gradients are of the scaled sum
	t.average.update(t.progress.Updates, t.model.Params(), t.dev)
	e.WinRate = t.winRate()
	return e, t.curvature(src, from)
}

// batchSums are sums over the targets of a step's batch.
type batchSums struct {
	loss        float64 // nats
	squaredLogZ float64 // for the z-loss; 0 if there is none
	targets     int
	flops       float64
	routing     autograd.Routing

	first        float64 // squared norm of the first micro-batch's gradient, where the noise is measured
	firstTargets int
}

// gradient computes the gradient of the summed loss of the batch whose samples start at from, in the parameters: the
// fold of its micro-batches' gradients. Sums of losses fold the same way.
func (t *Trainer) gradient(ctx context.Context, src dataset.Source, from uint64) (sums batchSums, err error) {
	for _, p := range t.model.Params() {
		p.ResetGrad()
	}
	clear(t.sources)
	scale := t.lossFactor()
	t.tape.LossScale = scale
	noise := t.measuresNoise()
	for i := range t.accum {
		if err := ctx.Err(); err != nil {
			return batchSums{}, err
		}
		t.enter(Reading)
		if err := t.load(src, from+uint64(i*t.rows)); err != nil {
			return batchSums{}, err
		}
		t.enter(Computing)
		t.batch.Seq.Noise = autograd.Noise{Seed: t.cfg.Seed, Step: t.progress.Step + 1, Row: i * t.batch.Tokens.Len()}
		t.batch.FirstLabel = uint64(i * t.batch.Tokens.Len())
		t.tape.LossScale = scale * t.factor(i)
		t.fold.begin()
		t.propagate()
		t.fold.end(t.dev)
		sums.routing.Add(t.tape.Routing)
		if i == 0 && t.replays() {
			if err := t.replay(); err != nil {
				return batchSums{}, err
			}
		}
		t.tape.LossScale = scale
		sums.flops += t.model.BatchFLOPs(t.batch) // counted here, while an accelerator is still busy
		sums.loss += t.dev.Sum(&t.batch.Losses)
		sums.targets += t.data.Valid()
		if mixed, ok := src.(ManySources); ok {
			t.addSources(mixed, from+uint64(i*t.rows))
		}
		if t.batch.ZLoss != 0 {
			t.normed = append(t.normed[:0], &t.batch.LogZ)
			sums.squaredLogZ += t.squares.Sum(t.dev, t.normed...)
		}
		if noise && i == 0 {
			sums.first, sums.firstTargets = t.squaredNorm(), sums.targets
		}
	}
	for _, p := range t.model.Params() {
		if !p.HasGrad() {
			t.dev.Zero(&p.Grad) // no loss depends on it, so it holds an earlier step's gradient
		}
	}
	return sums, nil
}
