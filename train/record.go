package train

import (
	"anneal/comm"
	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// RecordStep returns the kernel calls of an update on a device, by phase, for one rank of a group: those of a step of
// a valid, resolved configuration at its full batch and context, whose vocabulary must be known. It runs the trainer's
// own code without memory and without computing. Documents count as whole rows, and what the kernels of other ranks do
// is not there.
func RecordStep(cfg *config.Config, dev device.Properties, world comm.Comm) (*device.Recorder, error) {
	f, err := MeasureRank(cfg, dev, world)
	if err != nil {
		return nil, err
	}
	rec := device.NewRecorder(device.Null{})
	t, err := outlineTrainer(cfg, f, rec, absent.As(world))
	if err != nil {
		return nil, err
	}
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
	opt := overPeers(NewOptimizer(cfg.Optimizer), mesh)
	m, holding, err := lay(cfg, f.Model, f.Policy, opt, world, mesh, dev, arena)
	if err != nil {
		return nil, err
	}
	t := &Trainer{
		holding: holding, cfg: cfg, footprint: f, policy: f.Policy, opt: opt, scratch: arena(Scratch),
		accum: stepMicros(cfg), progress: Position{Updates: 1},
	}
	t.slots = laySlots(f, cfg, mesh, dev, arena)
	for i := range t.slots {
		t.slots[i].batch.Seq.Noise.Calm = true // no branch is dropped
	}
	t.Evaluator = Evaluator{
		dev: dev, model: m, world: mesh.World, mesh: mesh, between: alone{}, slot: &t.slots[0],
		rows: cfg.Train.MicroBatch, length: f.Model.Context,
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

// rehearseStep makes the calls of a step. Micro-batches after the second are like it.
func (t *Trainer) rehearseStep(rec *device.Recorder) error {
	for _, p := range t.model.Params() {
		p.ResetGrad()
	}
	n := t.rounds()
	each := n
	if t.block() == 1 && n > 2 {
		each = 2
	}
	for k := range each {
		if rec.Times = 1; k == 1 {
			rec.Times = n - each + 1
		}
		if err := t.rehearseMicro(k); err != nil {
			return err
		}
	}
	rec.Times = 1
	t.enter(Summing)
	if t.shard != nil {
		if err := t.rehearseSettle(); err != nil {
			return err
		}
	} else {
		t.squaredNorm()
	}
	t.enter(Updating)
	if err := t.update(1, 1); err != nil {
		return err
	}
	t.average.update(1, t.params, t.dev)
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
	return nil
}

// rehearseSettle makes the calls with which the gradients of several ranks become one.
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
