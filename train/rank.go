package train

import (
	"anneal/comm"
	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/optim"
	"anneal/parallel"
	"anneal/precision"
	"anneal/tensor"
)

// holding is what a rank trains of a model: all of it, or a shard.
type holding struct {
	shard   *parallel.Shard // nil on a rank alone
	params  []*nn.Param     // the parameters, or pieces of them, that are updated here
	updated []updated       // the same, with their state
	fold    fold            // of a rank alone
	outer   *outer          // nil without groups that step alone
	average average
}

// lay lays out a model, and what a rank of the world trains of it, in arenas by name. Measuring arenas, device.Null and
// comm/absent give its size.
func lay(cfg *config.Config, c model.Config, p precision.Policy, o optim.Optimizer, world comm.Comm,
	dev device.Device, arena func(string) *tensor.Arena) (m *model.Decoder, h holding) {
	m = model.Declare(c)
	m.ScaleRates(updateRule(cfg.Optimizer))
	outside, world := world, comm.Split(world, cfg.Parallel.Outer.Groups)
	if mem := model.MemoryOf(dev, p, arena(Parameters), arena(Gradients)); world.Size() == 1 {
		m.Allocate(mem)
	} else {
		m.AllocateTables(mem)
		h.shard = parallel.New(shardOptions(cfg, p, o), world, dev, m.UnitParams(), arena)
	}
	h.params = m.Params()
	if !h.whole() {
		h.params = nil
		for _, o := range h.shard.Mine {
			h.params = append(h.params, o.Param)
		}
	}
	for i, q := range h.params {
		index := i
		if !h.whole() {
			index = h.shard.Mine[i].Piece.Param
		}
		h.updated = append(h.updated, layoutUpdated(cfg.Optimizer, o, arena(OptimizerState), q, index))
	}
	if world.Size() == 1 {
		h.fold = layoutFold(arena(GradientFold), m.Params(), foldRecipeOf(cfg))
	}
	if cfg.Average.EMA > 0 {
		h.average = layoutAverage(cfg.Average.EMA, arena(WeightAverage), h.params)
	}
	h.outer = layOuter(cfg.Parallel.Outer, outside, m.UnitParams(), h.updated, arena)
	return m, h
}

// whole reports whether this rank has all weights, gradients and state.
func (h *holding) whole() bool { return h.shard == nil || h.shard.Stage == 0 }

// shardOptions says what a rank of a run keeps.
func shardOptions(cfg *config.Config, p precision.Policy, o optim.Optimizer) parallel.Options {
	m := model.Memory{DType: p.Master, Weight: p.Weight}
	return parallel.Options{
		Stage: cfg.Parallel.Zero, Micro: stepMicros(cfg), Block: cfg.Parallel.SumBlock,
		Grad: p.Master, Apart: cfg.Average.EMA > 0,
		Wire: precision.Wire(cfg.Parallel.Wire), Seed: cfg.Seed,
		Divide: func(q *nn.Param) optim.Division { return optim.Divide(o, q) },
		Formats: func(q *nn.Param) (master, compute tensor.DType) {
			master = m.WeightOf(q.Role)
			if cfg.Parallel.Zero > 0 {
				return master, ReadFormat(cfg, p, q)
			}
			return master, master
		},
	}
}

// ReadFormat returns the format in which computing reads a weight from stage 1 of ZeRO on, where it is a copy of what
// owners update: that of products for what only they read.
func ReadFormat(cfg *config.Config, policy precision.Policy, p *nn.Param) tensor.DType {
	if (p.Role == nn.Matrix || p.Role == nn.Head) && policy.Products() {
		return policy.Operand
	}
	if cfg.Average.EMA > 0 { // evaluations of the average are read, too
		return policy.Master
	}
	return model.Memory{DType: policy.Master, Weight: policy.Weight}.WeightOf(p.Role)
}

// stepMicros returns the most micro-batches of a step, of the group of a rank.
func stepMicros(cfg *config.Config) int {
	per := cfg.Train.MicroBatch * cfg.Model.Context
	per *= max(cfg.Parallel.Outer.Groups, 1)
	return (cfg.Train.BatchTokens + per - 1) / per
}
