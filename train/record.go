package train

import (
	"anneal/comm"
	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/optim"
	"anneal/parallel"
	"anneal/precision"
	"anneal/program"
	"anneal/tensor"
)

// RecordStep returns the kernel calls, by phase, that one rank of a group makes on a device in a step at full batch
// and context. The configuration must be valid and resolved, and its vocabulary known. RecordStep runs the trainer's
// own code without memory and without computing. It does not include the kernels of other ranks. Calls made in every
// k-th step count 1/k times, and those of a pipeline's instructions have an Action. pairs is device.Recorder's Pairs.
// With a pipeline, world must not be in place, because a stage needs memory for what it receives.
func RecordStep(cfg *config.Config, dev device.Properties, world comm.Comm,
	pairs func(length int) float64) (*device.Recorder, error) {
	f, err := MeasureRank(cfg, dev, world)
	if err != nil {
		return nil, err
	}
	rec := device.NewRecorder(device.Null{})
	rec.Pairs = pairs
	t, err := outlineTrainer(cfg, f, rec, absent.As(world))
	if err != nil {
		return nil, err
	}
	rec.Phase = Reading.String() // a step begins with it
	t.OnPhase = func(p Phase) { rec.Phase = p.String() }
	return rec, t.rehearseStep(rec)
}

// outlineTrainer returns a trainer without memory.
func outlineTrainer(cfg *config.Config, f *Footprint, dev device.Device, world comm.Comm) (*Trainer, error) {
	measures := map[string]*tensor.Arena{}
	arena := func(name string) *tensor.Arena {
		if measures[name] == nil {
			measures[name] = tensor.NewMeasure(name)
		}
		return measures[name]
	}
	mesh, err := meshOf(cfg, world)
	if err != nil {
		return nil, err
	}
	opt := overPeers(ruleOf(cfg), mesh)
	m, holding, err := lay(cfg, f.Model, f.Policy, opt, world, mesh, dev, arena)
	if err != nil {
		return nil, err
	}
	t := &Trainer{
		holding: holding, cfg: cfg, footprint: f, policy: f.Policy, opt: opt, scratch: arena(Scratch),
		accum: stepMicros(cfg), norms: newParamNorms(model.Outline(f.Model, f.Policy)),
		progress: Position{Updates: 2}, // first updates are special
	}
	t.slots = laySlots(f, cfg, mesh, dev, arena)
	for i := range t.slots {
		t.slots[i].batch.Seq.Noise.Calm = true // no branch is dropped
	}
	t.Evaluator = Evaluator{
		dev: dev, model: m, world: mesh.World, mesh: mesh, between: alone{}, slot: &t.slots[0],
		rows: cfg.Train.MicroBatch, length: f.Model.Context,
	}
	if t.teacher, err = layTeacher(cfg, f, dev, arena); err != nil {
		return nil, err
	}
	t.layChunks()
	t.pipe = layPipeline(mesh, cfg, streams(cfg, f, t.batch), f, arena)
	for _, p := range m.Params() {
		t.parts = append(t.parts, gradientParts(opt, p))
	}
	if t.shard != nil {
		t.between = t.shard
	}
	return t, nil
}

// rehearseStep makes the calls of a step. Calls that only some steps make count by the share of those steps.
func (t *Trainer) rehearseStep(rec *device.Recorder) error {
	if every := t.cfg.Guard.ReplayEvery; every > 0 {
		t.enter(Forward)
		rec.Times = 1 / float64(every)
		if err := t.propagate(true, false, nil); err != nil {
			return err
		}
	}
	if err := t.rehearseGradient(rec, 1); err != nil {
		return err
	}
	t.enter(Updating)
	if err := t.update(1, 1); err != nil {
		return err
	}
	t.average.update(1, t.updated, t.dev)
	if o, is := t.opt.(*optim.SOAP); is {
		rec.Times = 1 / float64(o.Every)
		for _, p := range t.updated {
			if p.Frozen {
				continue
			}
			o.Refresh(t.dev, p.master, p.state, t.scratch)
		}
		rec.Times = 1
	}
	o, is := t.opt.(*optim.Sophia)
	if !is {
		return nil
	}
	t.sampleLabels(tensor.NewRNG(t.cfg.Seed, tensor.PurposeLabel, 1))
	if err := t.rehearseGradient(rec, 1/float64(o.Every)); err != nil {
		return err
	}
	rec.Times = 1 / float64(o.Every)
	t.observe(o, 1)
	return nil
}

// rehearseGradient makes the calls of a batch's gradient; each counts the given number of times. Micro-batches after
// the second are like the second.
func (t *Trainer) rehearseGradient(rec *device.Recorder, times float64) error {
	for _, p := range t.model.Params() {
		p.ResetGrad()
	}
	n := t.rounds()
	if t.pipe != nil {
		if err := t.rehearsePipeline(rec, times, n); err != nil {
			return err
		}
		n = 0
	}
	each := n
	if t.block() == 1 && n > 2 {
		each = 2
	}
	for k := range each {
		if rec.Times = times; k == 1 {
			rec.Times = times * float64(n-each+1)
		}
		if err := t.rehearseMicro(k); err != nil {
			return err
		}
	}
	rec.Times = times
	t.enter(Summing)
	if t.shard != nil {
		if err := t.rehearseSettle(); err != nil {
			return err
		}
	} else {
		t.squaredNorm()
	}
	rec.Times = 1
	return nil
}

// rehearseMicro makes the calls of micro-batch k of this rank.
func (t *Trainer) rehearseMicro(k int) error {
	t.enter(Forward)
	if t.shard != nil {
		t.beginRound(k)
	} else {
		t.fold.begin(k)
	}
	if err := t.propagate(true, true, nil); err != nil {
		return err
	}
	t.enter(Summing)
	if t.shard == nil {
		t.fold.end(t.dev, k, t.accum, precision.WireKey{})
	}
	t.dev.Sum(&t.batch.Losses)
	if t.teacher != nil {
		t.dev.Sum(t.batch.Teacher.KL)
	}
	return nil
}

// An Action is what a stage of a pipeline computes for its micro-batches: the operation of an instruction for a chunk.
type Action struct {
	Op    program.Op
	Chunk int
}

// rehearsePipeline makes the calls of this stage's instructions for n micro-batches.
func (t *Trainer) rehearsePipeline(rec *device.Recorder, times float64, n int) (err error) {
	defer parallel.Recover(&err)
	list, err := t.pipe.program(n)
	if err != nil {
		return err
	}
	rec.Times = times
	for _, x := range list {
		if _, err := t.occupy(x.Instr, true); err != nil {
			return err
		}
		rec.Action = Action{x.Op, x.Chunk}
		if err := t.act(x.Instr, true); err != nil {
			return err
		}
		t.busy = !x.last
	}
	rec.Action = nil
	t.slot = &t.slots[0]
	return nil
}

// rehearseSettle makes the calls that sum the gradients of several ranks.
func (t *Trainer) rehearseSettle() error {
	if err := t.shard.Drain(); err != nil {
		return err
	}
	if err := t.shard.Tie(); err != nil {
		return err
	}
	t.shard.SquareSums()
	return t.shard.Total()
}
