package train

import (
	"math"

	"anneal/config"
	"anneal/schedule"
)

// Ramps determines the input of each step of a run: the number of micro-batches and the sequence length.
type Ramps struct {
	batch  schedule.BatchRamp
	length schedule.LengthRamp
	groups int    // parallel.outer.groups: the size of a step is a multiple of one micro-batch per group
	rule   string // train.batch_ramp_lr: how the learning rate follows the batch
}

// NewRamps returns the ramps of a valid configuration.
func NewRamps(cfg *config.Config) Ramps {
	batch, err := cfg.BatchRamp()
	length, also := cfg.LengthRamp()
	if err != nil || also != nil {
		panic("train: unchecked configuration")
	}
	return Ramps{batch, length, max(cfg.Parallel.Outer.Groups, 1), cfg.Train.BatchRampLR}
}

// A Portion is the input of one step, and its effect on the learning rate.
type Portion struct {
	Micro    int // micro-batches
	Length   int // tokens in a sequence
	Tokens   int64
	Position int     // in the learning-rate schedule
	Rate     float64 // factor of the rate
}

// SameFor returns a number of steps after p, at least one, that are sure to have the same tokens in sequences of the
// same length.
func (r Ramps) SameFor(p Position) int {
	return min(r.batch.SameFor(int(p.Tokens)), r.length.SameFor(p.Step+1))
}

// Next returns the portion of the step after p. It depends only on the counters, so a resumed run reads the same data
// as an uninterrupted one. Schedules count updates, or tokens if steps differ in size.
func (r Ramps) Next(p Position) Portion {
	tokens := r.batch.Batch(int(p.Tokens))
	n := Portion{
		Micro: tokens / r.batch.Unit * r.groups, Length: r.length.Length(p.Step + 1), Tokens: int64(tokens),
		Position: p.Updates + 1, Rate: 1,
	}
	if r.batch.Stages == nil {
		return n
	}
	n.Position = int(p.Applied) + tokens
	switch part := float64(tokens) / float64(r.batch.Full); r.rule {
	case "sqrt": // Malladi et al. 2022, arXiv 2205.10287, for Adam
		n.Rate = math.Sqrt(part)
	case "linear": // Goyal et al. 2017, arXiv 1706.02677, for SGD
		n.Rate = part
	}
	return n
}
