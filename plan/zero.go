package plan

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/optim"
	"anneal/parallel"
	"anneal/train"
)

// The stages of ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054) on D ranks, in bytes a parameter. V is a weight in
// the format in which it is updated, C in the format that computing reads, G its gradient, S its optimizer state;
// AdamW in bf16 has 4, 2, 4 and 8.
//
//	stage  weights  gradients  state  AdamW, bf16  sent by a rank in a step, times (D−1)/D
//	0      V        G          S      16           B·W gradients, G sums of gradients
//	1      C + V/D  G          S/D    6 + 12/D     B·W gradients, C weights
//	2      C + V/D  G/D        S/D    2 + 16/D     B·W gradients, C weights
//	3      V/D      G/D        S/D    16/D         B·W gradients, about 2·M·C weights
//
// In a step a rank computes M micro-batches and sends B sums of them, with W bytes per element in the format of the
// wire; each rank receives the pieces that it owns. At stage 3 the weights are sent for every forward and every
// backward pass. If C = V, stages 1 and 2 update the weights in the place where products read them, so they keep only
// C. In addition a rank has room for gradients and weights in transit.

// Stages is the number of stages of ZeRO, with stage 0, which is plain data parallelism.
const Stages = 4

// A Stage holds the bytes that a rank keeps and sends at a stage of ZeRO.
type Stage struct {
	Zero          int   `json:"zero"`
	Weights       int64 `json:"weight_bytes"` // of the rank that needs the most
	Gradients     int64 `json:"gradient_bytes"`
	State         int64 `json:"state_bytes"`
	Transit       int64 `json:"transit_bytes"`       // room for gradients and weights in transit
	Total         int64 `json:"total_bytes"`         // with activations and everything else
	SentGradients int64 `json:"sent_gradient_bytes"` // in a step, mean over ranks
	SentWeights   int64 `json:"sent_weight_bytes"`
}

// Kept returns the bytes of weights, gradients and optimizer state.
func (s Stage) Kept() int64 { return s.Weights + s.Gradients + s.State }

// Ranks describes how the ranks of a run share its model.
type Ranks struct {
	Count    int     `json:"count"`
	Zero     int     `json:"zero"`            // of the run
	Bytes    []int64 `json:"rank_bytes"`      // memory of each rank as a process of its own, or an upper bound
	Fullest  int     `json:"fullest_rank"`    // the first rank that needs the most
	Together int64   `json:"together_bytes"`  // memory of all ranks in one process
	Here     bool    `json:"fit_one_process"` // whether there are threads for all ranks in one process
	Sums     int     `json:"sums"`            // sums of micro-batches that a rank sends in a step, at most
	Idle     int     `json:"ranks_without"`   // ranks that own nothing
	Stages   []Stage `json:"stages"`          // all, to compare
	Mesh     []Share `json:"mesh,omitempty"`  // by stage of the pipeline; nil if there is data parallelism alone

	Micro int     `json:"micro_batches,omitempty"`       // in a pipeline: micro-batches of a step per stage, at most
	Waits float64 `json:"pipeline_idle_share,omitempty"` // simulated idle share of all stages of a pipeline, 0 to 1

	block  int   // parallel.sum_block
	copies int64 // bytes of all ranks' copies for checkpoints, if memory allows them
}

// measureRanks returns how the ranks of a run share its model, and the footprint of the fullest rank.
func measureRanks(cfg *config.Config, machine device.Properties) (*train.Footprint, *Ranks, error) {
	r := &Ranks{Count: cfg.Parallel.Ranks, Zero: cfg.Parallel.Zero, block: cfg.Parallel.SumBlock}
	r.Here = r.Count <= max(machine.Threads(), cfg.Threads) // more threads than cores would take turns
	list, err := candidates(cfg, machine, r.Here)
	if err != nil {
		return nil, nil, err
	}
	all, err := footprints(cfg, machine, list, false)
	if err != nil {
		return nil, nil, err
	}
	most := r.fill(cfg, list, all)
	fullest := all[slices.Index(list, r.Fullest)]
	if r.Here {
		if r.Together, err = together(cfg, machine, r.Count); err != nil {
			return nil, nil, err
		}
	}
	t, err := trafficOf(cfg, fullest, sizesOf(cfg).At(r.Fullest, r.Count).Stage)
	if err != nil {
		return nil, nil, err
	}
	if t.ranks > 1 {
		r.Sums = t.sums
	}
	r.Idle = t.groups * idle(cfg, model.DeclarePart(fullest.Model, fullest.Here), t.ranks)
	for zero := range Stages {
		staged := cfg.Clone()
		staged.Parallel.Zero = zero
		f, err := train.MeasureRank(staged, machine, absent.New(r.Fullest, r.Count, false))
		if err != nil {
			return nil, nil, err
		}
		r.Stages = append(r.Stages, t.stage(zero, f))
	}
	if cfg.Parallel.Shared() > 1 {
		for _, i := range most {
			share, err := shareOf(cfg, machine, all[i], list[i])
			if err != nil {
				return nil, nil, err
			}
			r.Mesh = append(r.Mesh, share)
		}
	}
	return fullest, r, nil
}

// fill sets the memory of each rank from the footprints of those that are listed in order, and returns the index in the
// list of the fullest rank of each stage of the pipeline.
func (r *Ranks) fill(cfg *config.Config, list []int, all []*train.Footprint) (most []int) {
	sizes := sizesOf(cfg)
	stage := func(rank int) int { return sizes.At(rank, r.Count).Stage }
	most = slices.Repeat([]int{-1}, max(sizes.Pipeline, 1))
	r.Bytes, r.Fullest = make([]int64, r.Count), slices.Min(list)
	for i, rank := range list {
		r.copies += all[i].CheckpointCopy()
		r.Bytes[rank] = all[i].Total()
		if m := &most[stage(rank)]; *m < 0 || all[i].Total() > all[*m].Total() {
			*m = i
		}
		if r.Bytes[rank] > r.Bytes[r.Fullest] {
			r.Fullest = rank
		}
	}
	for rank := range r.Bytes { // ranks that were not measured need at most as much as the fullest of their stage
		if _, measured := slices.BinarySearch(list, rank); !measured {
			r.Bytes[rank] = all[most[stage(rank)]].Total()
		}
	}
	return most
}

// together returns the memory of all ranks in one process: the arenas of each rank, and once the other parts, which
// grow with the threads.
func together(cfg *config.Config, machine device.Properties, ranks int) (bytes int64, err error) {
	all, err := footprints(cfg, machine, upTo(ranks), true)
	if err != nil {
		return 0, err
	}
	for _, f := range all {
		for _, p := range f.Arenas {
			bytes += p.Bytes
		}
	}
	for _, p := range all[0].Beside {
		bytes += p.Bytes
	}
	return bytes, nil
}

// footprints returns the memory of the listed ranks. Within a process, ranks read gradients in place.
func footprints(
	cfg *config.Config, machine device.Properties, ranks []int, inPlace bool,
) ([]*train.Footprint, error) {
	list, errs := make([]*train.Footprint, len(ranks)), make([]error, len(ranks))
	var group sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(ranks)) {
		group.Go(func() {
			for i := range next {
				list[i], errs[i] = train.MeasureRank(cfg, machine, absent.New(ranks[i], cfg.Parallel.Ranks, inPlace))
			}
		})
	}
	for i := range ranks {
		next <- i
	}
	close(next)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Remarks returns notes if ranks send much, because every sum is as large as the model, or if some ranks own nothing.
func (r *Ranks) Remarks() (list []string) {
	if r == nil {
		return nil
	}
	if r.Sums > 1 {
		list = append(list, fmt.Sprintf("a rank sends its gradient %d times a step: a larger train.micro_batch sends "+
			"less, and so does parallel.sum_block = %d, which changes bits", r.Sums, r.Sums*r.block))
	}
	if r.Waits > 0 {
		micro := "1 micro-batch"
		if r.Micro != 1 {
			micro = fmt.Sprintf("%d micro-batches", r.Micro)
		}
		list = append(list,
			fmt.Sprintf("pipeline: %s a step on %d stages, which are idle for %.1f %% of "+
				"it (simulated; times are guessed from parameters): more micro-batches a step help", micro,
				len(r.Mesh), 100*r.Waits))
	}
	if r.Idle > 0 {
		own := "owns"
		if r.Idle != 1 {
			own = "own"
		}
		list = append(list, fmt.Sprintf("the model has too few pieces for %d ranks: %d of them %s none, so that more "+
			"ranks save no memory", r.Count, r.Idle, own))
	}
	return list
}

// idle returns how many ranks own nothing of a model.
func idle(cfg *config.Config, m *model.Decoder, ranks int) (n int) {
	for _, elements := range owned(cfg, m, ranks) {
		if elements == 0 {
			n++
		}
	}
	return n
}

// owned returns how many elements of a model each rank owns, among the ranks whose gradients are added.
func owned(cfg *config.Config, m *model.Decoder, ranks int) []int {
	opt, n := train.NewOptimizer(cfg.Optimizer), make([]int, ranks)
	for _, p := range parallel.Deal(m.UnitParams(), ranks, func(p *nn.Param) optim.Division {
		return optim.Divide(opt, p)
	}) {
		n[p.Owner] += p.To - p.From
	}
	return n
}
