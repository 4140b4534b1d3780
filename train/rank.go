package train

import (
	"slices"

	"anneal/comm"
	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/optim"
	"anneal/parallel"
	"anneal/precision"
	"anneal/program"
	"anneal/tensor"
)

// holding is the part of a model that a rank trains: all of it, or a shard.
type holding struct {
	shard   *parallel.Shard // nil on a rank alone
	params  []*nn.Param     // the parameters, or pieces of them, that this rank updates
	updated []updated       // the same, with their state
	offload *offload        // nil unless the state is in a file
	fold    fold            // of a rank alone
	outer   *outer          // nil without groups that step separately
	average average
	trained []tensor.Tensor // weights trained by a schedule-free optimizer, one for each of params; else empty
}

// part returns the part of a model that a rank of a mesh has. The stages of a pipeline have layers of about equal
// cost.
func part(cfg *config.Config, c model.Config, mesh *parallel.Mesh) (model.Part, error) {
	x := model.Part{Tensor: mesh.Cut, Tensors: mesh.Tensor, Sequence: cfg.Parallel.Sequence && mesh.Tensor > 1}
	if mesh.Pipeline == 1 {
		return x, nil
	}
	s, err := program.Parse(cfg.Parallel.Schedule)
	if err != nil {
		return x, err
	}
	from := 0
	for k, layers := range program.Balance(model.Declare(c).LayerFLOPs(), mesh.Pipeline*s.Chunks) {
		if k%mesh.Pipeline == mesh.Stage {
			x.Chunks = append(x.Chunks, model.Span{From: from, To: from + layers})
		}
		from += layers
	}
	return x, nil
}

// meshOf returns the mesh of all ranks, or of the ranks of this rank's group.
func meshOf(cfg *config.Config, world comm.Comm) (*parallel.Mesh, error) {
	group, err := comm.Split(world, cfg.Parallel.Outer.Groups)
	if err != nil {
		return nil, err
	}
	tensor, context, pipeline := cfg.Parallel.Mesh()
	return parallel.NewMesh(group, parallel.Sizes{Tensor: tensor, Context: context, Pipeline: pipeline})
}

// lay lays out a model, and the part that a rank of a mesh trains, in named arenas. With measuring arenas, device.Null
// and comm/absent it only measures sizes. outside holds the ranks of all groups that step separately.
//
// This is the one place where parallelisms meet, in this order:
//
//	mesh       who is beside whom (parallel.NewMesh)
//	pipeline   which layers are here, tensor parallelism which part of them (model.DeclarePart)
//	shard      who owns what of that, among the ranks whose gradients are added (parallel.New)
//	state      of what this rank updates: optimizer, average, outer step
func lay(cfg *config.Config, c model.Config, p precision.Policy, o optim.Optimizer, outside comm.Comm,
	mesh *parallel.Mesh, dev device.Device, arena func(string) *tensor.Arena) (m *model.Decoder, h holding, err error) {
	here, err := part(cfg, c, mesh)
	if err != nil {
		return nil, h, err
	}
	m = model.DeclarePart(c, here)
	m.ScaleRates(updateRule(cfg.Optimizer))
	world := mesh.World
	if mem := model.MemoryOf(dev, p, arena(Parameters), arena(Gradients)); world.Size() == 1 {
		m.Allocate(mem)
	} else {
		m.AllocateTables(mem)
		if err := checkCut(cfg, o, m); err != nil {
			return nil, h, err
		}
		o := shardOptions(cfg, p, o, mesh)
		if c.TieEmbeddings {
			o.Tied = mesh.Ends
		}
		h.shard = parallel.New(o, mesh.Sums, dev, m.UnitParams(), arena)
		if err := checkDeferred(cfg, mesh, h.shard); err != nil {
			return nil, h, err
		}
	}
	h.params = m.Params()
	if !h.whole() {
		h.params = nil
		for _, o := range h.shard.Mine {
			h.params = append(h.params, o.Param)
		}
	}
	home := OptimizerState
	if cfg.Memory.Offload.Has(config.OptimizerState) {
		home = offloadedState
	}
	for i, q := range h.params {
		index := i
		if !h.whole() {
			index = h.shard.Mine[i].Piece.Param
		}
		h.updated = append(h.updated, layoutUpdated(cfg.Optimizer, o, arena(home), q, index))
	}
	if cfg.Memory.Offload.Has(config.OptimizerState) {
		h.offload = layoutOffload(o, arena(OptimizerState), h.updated)
	}
	if world.Size() == 1 {
		trained := slices.DeleteFunc(slices.Clone(m.Params()), func(p *nn.Param) bool { return p.Frozen })
		h.fold = layoutFold(arena(GradientFold), trained, foldRecipeOf(cfg))
	}
	h.trained = layoutTrained(cfg.Optimizer, h.updated)
	if cfg.Average.EMA > 0 {
		h.average = layoutAverage(cfg.Average.EMA, arena(WeightAverage), h.params)
	}
	h.outer = layOuter(cfg.Parallel.Outer, outside, m.UnitParams(), h.updated, arena)
	return m, h, nil
}

// whole reports whether this rank has all weights, gradients and state.
func (h *holding) whole() bool { return h.shard == nil || h.shard.Stage == 0 }

// shardOptions returns the options of a rank's shard.
func shardOptions(cfg *config.Config, p precision.Policy, o optim.Optimizer, mesh *parallel.Mesh) parallel.Options {
	m := model.Memory{DType: p.Master, Weight: p.Weight}
	block := cfg.Parallel.SumBlock
	if mesh.Sums.Size() == 1 && block == 1 && cfg.Parallel.Wire == "f32" && cfg.Train.NoiseScaleEvery == 0 {
		block = stepMicros(cfg) // one rank can sum from left to right in place
	}
	return parallel.Options{
		Stage: cfg.Parallel.Zero, Micro: stepMicros(cfg) * mesh.Context, Block: block,
		Grad: p.Master, Apart: showsOthers(cfg),
		Wire: precision.Wire(cfg.Parallel.Wire), Seed: cfg.Seed, Cut: mesh.Cut,
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

// ReadFormat returns the format in which forward and backward read a weight, with ZeRO stage 1 or higher. There the
// weight is a copy of the owners' master; if only matrix products read it, the copy has the format of their operands.
func ReadFormat(cfg *config.Config, policy precision.Policy, p *nn.Param) tensor.DType {
	if (p.Role == nn.Matrix || p.Role == nn.Head) && policy.Products() {
		return policy.Operand
	}
	if showsOthers(cfg) { // they are read, too
		return policy.Master
	}
	return model.Memory{DType: policy.Master, Weight: policy.Weight}.WeightOf(p.Role)
}

// stepMicros returns the largest number of micro-batches that a group computes in a step.
func stepMicros(cfg *config.Config) int {
	per := cfg.Train.MicroBatch * cfg.Model.Context
	per *= max(cfg.Parallel.Outer.Groups, 1)
	return (cfg.Train.BatchTokens + per - 1) / per
}
