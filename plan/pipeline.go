package plan

import (
	"anneal/config"
	"anneal/model"
	"anneal/parallel"
	"anneal/program"
	"anneal/train"
)

// A Mesh describes the work of ranks in a run: the place of each rank, and how the stages of the pipeline spend a
// step.
type Mesh struct {
	Parallel config.Parallel  `json:"-"`
	Data     int              `json:"data"`          // ranks with micro-batches of their own
	Places   []parallel.Place `json:"-"`             // by rank
	Micro    int              `json:"micro_batches"` // micro-batches of a step, on the rank with the most
	Stages   []PipelineStage  `json:"stages"`
	Idle     float64          `json:"idle_share"` // idle share of the time of all stages, 0 to 1

	Chunks   int               `json:"chunks"` // of layers, on each stage
	Lists    [][]program.Instr `json:"-"`
	Timeline program.Timeline  `json:"-"` // in forward passes of a layer
}

// A PipelineStage describes a stage of a pipeline: its ranks, layers, memory and idle time.
type PipelineStage struct {
	First  int          `json:"first_rank"` // its ranks are consecutive
	Last   int          `json:"last_rank"`
	Layers []model.Span `json:"-"`                  // by chunk
	Peak   int          `json:"micro_batches_kept"` // at one time, at most, counted in each chunk
	Idle   float64      `json:"idle_share"`         // of the step, 0 to 1
	Bytes  int64        `json:"memory_bytes"`       // of its rank that needs most
}

// MeshOf lays out the mesh of a run with a forecast. The times of its timeline are guesses: the time of a layer, and
// of the head, is proportional to the parameters that a token uses; each half of the backward pass takes as long as
// the forward pass; messages take no time.
func MeshOf(cfg *config.Config, f *Foresight) (*Mesh, error) {
	p := cfg.Parallel
	_, _, stages := p.Mesh()
	ranks := max(p.Ranks, 1)
	m := &Mesh{Parallel: p, Data: ranks / p.Shared(), Chunks: 1}
	schedule := program.Schedule{Name: "1f1b", Chunks: 1}
	if stages > 1 {
		var err error
		if schedule, err = program.Parse(p.Schedule); err != nil {
			return nil, err
		}
		m.Chunks = schedule.Chunks
	}
	m.Micro = microBatches(cfg, m.Data)
	var err error
	if m.Lists, err = schedule.Fit(stages, m.Micro); err != nil {
		return nil, err
	}
	if err := m.stages(cfg, f, ranks, stages); err != nil {
		return nil, err
	}
	return m, m.simulate(cfg, f, stages)
}

// microBatches returns the number of micro-batches of a step on the rank with the most.
func microBatches(cfg *config.Config, data int) int {
	all := cfg.Train.BatchTokens / (cfg.Train.MicroBatch * cfg.Model.Context)
	block := max(cfg.Parallel.SumBlock, 1)
	round := block * data
	return max(1, all/round*block+min(block, all%round))
}

// stages sets the ranks, the layers and the memory of each stage.
func (m *Mesh) stages(cfg *config.Config, f *Foresight, ranks, stages int) error {
	sizes := parallel.Sizes{Tensor: cfg.Parallel.Tensor, Context: cfg.Parallel.Context, Pipeline: stages}
	m.Stages = make([]PipelineStage, stages)
	for s := range m.Stages {
		layers, err := train.Layers(cfg, s)
		if err != nil {
			return err
		}
		m.Stages[s] = PipelineStage{First: s * ranks / stages, Last: (s+1)*ranks/stages - 1, Layers: layers}
	}
	for r := range ranks {
		at := sizes.At(r, ranks)
		m.Places = append(m.Places, at)
		need := &m.Stages[at.Stage].Bytes
		if f.Ranks != nil && r < len(f.Ranks.Bytes) {
			*need = max(*need, f.Ranks.Bytes[r])
		} else if ranks == 1 {
			*need = f.Bytes
		}
	}
	return nil
}

// simulate computes the timeline of a step.
func (m *Mesh) simulate(cfg *config.Config, f *Foresight, stages int) error {
	tables := int64(cfg.Model.Vocab) * int64(cfg.Model.Dim)
	head := tables
	if !cfg.Model.TieEmbeddings {
		tables *= 2
	}
	layer := float64(f.Active-tables) / float64(cfg.Model.Layers)
	var c program.Costs
	for chunk := range m.Chunks {
		for _, s := range m.Stages {
			span := s.Layers[chunk]
			cost := float64(span.To - span.From)
			if span.To == cfg.Model.Layers {
				cost += float64(head) / layer
			}
			c.Forward = append(c.Forward, cost)
		}
	}
	c.BackwardInput, c.BackwardWeights = c.Forward, c.Forward
	var err error
	if m.Timeline, err = program.Simulate(m.Lists, c); err != nil {
		return err
	}
	for s := range m.Stages {
		m.Stages[s].Idle, m.Stages[s].Peak = m.Timeline.Idle[s]/m.Timeline.Total, m.Timeline.Peak[s]
	}
	m.Idle = m.Timeline.IdleShare()
	return nil
}
