package bench

import (
	"time"

	"anneal/program"
	"anneal/train"
)

// PipelineCost compares a pipeline with a simulation of its schedule from the measured times of its computations.
type PipelineCost struct {
	IdleShare          float64     `json:"idle_share"`           // share of time in which stages do not compute
	SimulatedIdleShare float64     `json:"simulated_idle_share"` // the same if messages take no time
	Ideal              float64     `json:"ideal"`                // speed over that of one rank: 1 − SimulatedIdleShare
	OfIdeal            float64     `json:"of_ideal"`             // speed over the ideal
	ComputeMs          float64     `json:"compute_ms"`           // of all stages in a step
	Parts              []PartCosts `json:"parts"`                // of the model, in its order
}

// PartCosts holds the median times, in milliseconds, of a part of a pipeline for a micro-batch.
type PartCosts struct {
	ForwardMs         float64 `json:"forward_ms"`
	BackwardMs        float64 `json:"backward_ms"` // including the gradients of weights, unless they are deferred
	BackwardWeightsMs float64 `json:"backward_weights_ms"`
}

// stageTimes holds the times of one rank's instructions.
type stageTimes struct {
	Steps    []stageStep              `json:"steps"`
	Computed map[program.Op][][]int64 `json:"computed"` // nanoseconds by chunk
}

// stageStep is the pipelined part of a step.
type stageStep struct{ Took, Busy time.Duration }

// follow records the instructions of the trainer's next step.
func (s *stageTimes) follow(t *train.Trainer) {
	var begin time.Time
	n := len(s.Steps)
	t.OnInstr = func(i program.Instr, began time.Time, took time.Duration) {
		if len(s.Steps) == n {
			s.Steps, begin = append(s.Steps, stageStep{}), began
		}
		step := &s.Steps[n]
		step.Took = began.Add(took).Sub(begin)
		if i.Op.Message() {
			return
		}
		step.Busy += took
		if s.Computed == nil {
			s.Computed = map[program.Op][][]int64{}
		}
		for len(s.Computed[i.Op]) <= i.Chunk {
			s.Computed[i.Op] = append(s.Computed[i.Op], nil)
		}
		s.Computed[i.Op][i.Chunk] = append(s.Computed[i.Op][i.Chunk], took.Nanoseconds())
	}
}

// comparePipelines simulates the cases of several ranks with the measured times of their computations.
func (r *RanksResult) comparePipelines() error {
	for i := range r.Cases[1:] {
		c := &r.Cases[i+1]
		p, err := c.simulate(r.MicroBatches)
		if err != nil {
			return err
		}
		p.OfIdeal = c.OfOneRank / p.Ideal
		c.Pipeline = p
	}
	return nil
}

// simulate returns the cost of a pipeline of micro micro-batches, without the comparison with its ideal.
func (c *RanksCase) simulate(micro int) (*PipelineCost, error) {
	schedule, err := program.Parse(c.Name)
	if err != nil {
		return nil, err
	}
	p := &PipelineCost{}
	for part := range c.Ranks * schedule.Chunks {
		took := func(op program.Op) float64 { return c.computed(op, part) }
		p.Parts = append(p.Parts, PartCosts{
			ForwardMs:         took(program.Forward),
			BackwardMs:        max(took(program.Backward), took(program.BackwardInput)),
			BackwardWeightsMs: took(program.BackwardWeights),
		})
	}
	var costs program.Costs
	for _, part := range p.Parts {
		costs.Forward = append(costs.Forward, part.ForwardMs)
		costs.BackwardInput = append(costs.BackwardInput, part.BackwardMs)
		costs.BackwardWeights = append(costs.BackwardWeights, part.BackwardWeightsMs)
	}
	lists, err := schedule.Fit(c.Ranks, micro)
	if err != nil {
		return nil, err
	}
	line, err := program.Simulate(lists, costs)
	if err != nil {
		return nil, err
	}
	p.SimulatedIdleShare = line.IdleShare()
	p.Ideal = 1 - p.SimulatedIdleShare
	p.IdleShare, p.ComputeMs = c.idle()
	return p, nil
}

// computed returns the median time in milliseconds of an instruction of a part; 0 if the schedule has none.
func (c *RanksCase) computed(op program.Op, part int) float64 {
	var list []float64
	for _, round := range c.stages {
		if chunks := round[part%c.Ranks].Computed[op]; len(chunks) > 0 {
			for _, ns := range chunks[part/c.Ranks] {
				list = append(list, float64(ns)/1e6)
			}
		}
	}
	if list == nil {
		return 0
	}
	return medianOf(list)
}

// idle returns two medians over the steps: the share of their time in which the stages were idle, and the milliseconds
// in which they computed. Stages begin a step together and end it one after the other, so a step takes as long as its
// slowest stage.
func (c *RanksCase) idle() (share, ms float64) {
	var shares, busy []float64
	for _, round := range c.stages {
		for k := range round[0].Steps {
			var took, sum time.Duration
			for _, stage := range round {
				took = max(took, stage.Steps[k].Took)
				sum += stage.Steps[k].Busy
			}
			shares = append(shares, 1-float64(sum)/float64(took)/float64(len(round)))
			busy = append(busy, float64(sum.Microseconds())/1e3)
		}
	}
	return medianOf(shares), medianOf(busy)
}
