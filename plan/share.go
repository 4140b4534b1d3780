package plan

import (
	"slices"

	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/parallel"
	"anneal/train"
)

// A Share is the memory, in bytes, of a stage of the pipeline: that of the stage's fullest rank.
type Share struct {
	First   int           `json:"first_rank"` // the ranks of a stage are consecutive
	Last    int           `json:"last_rank"`
	Fullest int           `json:"fullest_rank"`
	Totals  [Stages]int64 `json:"total_bytes"` // total, by stage of ZeRO

	Activations int64 `json:"activation_bytes"`                 // kept for backward passes
	Whole       int64 `json:"activation_bytes_whole,omitempty"` // the same without sequence parallelism; 0 if the run has none
	Sent        Axes  `json:"sent"`                             // by a rank in a step

	Memory Estimate `json:"memory"` // of the fullest rank

	copy int64 // of the fullest rank's state, for checkpoints
}

// shareOf returns the share of a stage from the footprint of its fullest rank.
func shareOf(cfg *config.Config, machine device.Properties, f *train.Footprint, rank int) (s Share, err error) {
	ranks, at := cfg.Parallel.Ranks, sizesOf(cfg).At(rank, cfg.Parallel.Ranks)
	_, _, stages := cfg.Parallel.Mesh()
	sent, err := axes(cfg, f, at)
	if err != nil {
		return s, err
	}
	s = Share{
		First: at.Stage * ranks / stages, Last: (at.Stage+1)*ranks/stages - 1, Fullest: rank,
		Activations: f.Bytes(train.Activations), Sent: sent,
		Memory: itemise(f, model.Outline(f.Model, f.Policy).Count(), cfg.Train.MicroBatch*f.Model.Context),
		copy:   f.CheckpointCopy(),
	}
	other := cfg.Clone()
	for zero := range Stages {
		other.Parallel.Zero = zero
		g, err := train.MeasureRank(other, machine, absent.New(rank, ranks, false))
		if err != nil {
			return s, err
		}
		s.Totals[zero] = g.Total()
	}
	if cfg.Parallel.Sequence && cfg.Parallel.Tensor > 1 {
		other.Parallel.Zero, other.Parallel.Sequence = cfg.Parallel.Zero, false
		g, err := train.MeasureRank(other, machine, absent.New(rank, ranks, false))
		if err != nil {
			return s, err
		}
		s.Whole = g.Bytes(train.Activations)
	}
	return s, nil
}

// Up to mostMeasured ranks are all measured. With more, the first rank of each stage is measured, and the
// ownersMeasured that own most.
const (
	mostMeasured   = 128
	ownersMeasured = 16
)

// candidates returns the ranks to search for the fullest of each stage: all of them or, if there are many, those that
// own most of a stage among the first ranks of each group that shares layers. Another rank may need a few hundred
// bytes more, for gaps between its pieces.
func candidates(cfg *config.Config, machine device.Properties, all bool) (list []int, err error) {
	ranks := cfg.Parallel.Ranks
	if all || ranks <= mostMeasured || cfg.Parallel.Outer.On() {
		return upTo(ranks), nil
	}
	tensor, _, stages := cfg.Parallel.Mesh()
	for s := range stages {
		first, n := s*ranks/stages, ranks/stages/tensor
		f, err := train.MeasureRank(cfg, machine, absent.New(first, ranks, false))
		if err != nil {
			return nil, err
		}
		elements, owners := owned(cfg, model.DeclarePart(f.Model, f.Here), n), upTo(n)
		slices.SortStableFunc(owners, func(a, b int) int { return elements[b] - elements[a] })
		list = append(list, first)
		for _, owner := range owners[:min(n, ownersMeasured)] {
			list = append(list, first+tensor*owner)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// sizesOf returns the axes of a run's mesh.
func sizesOf(cfg *config.Config) parallel.Sizes {
	t, c, p := cfg.Parallel.Mesh()
	return parallel.Sizes{Tensor: t, Context: c, Pipeline: p}
}

// upTo returns the numbers below n.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
