package train

import (
	"math"

	"anneal/schedule"
	"anneal/train/config"
)

// ramps says what each step of a run reads: how many micro-batches, in sequences of which length.
type ramps struct {
	batch  schedule.BatchRamp
	length schedule.LengthRamp
	rule   string // how the learning rate follows the batch: train.batch_ramp_lr
}

// newRamps returns the ramps of a valid configuration.
func newRamps(cfg *config.Config) ramps {
	batch, err := cfg.BatchRamp()
	length, also := cfg.LengthRamp()
	if err != nil || also != nil {
		panic("train: unchecked configuration")
	}
	return ramps{batch, length, cfg.Train.BatchRampLR}
}

// A portion is what one step reads, and what follows from that for its rate.
type portion struct {
	micro    int // micro-batches
	length   int // tokens in a sequence
	tokens   int64
	position int     // in the learning-rate schedule
	lr       float64 // factor of the rate
}

// next returns the portion of the step after p. It depends on the counters alone, so a run that was resumed reads what
// it would have read. A schedule counts updates, or tokens where steps differ in them.
func (r ramps) next(p progress) portion {
	tokens := r.batch.Batch(int(p.Tokens))
	n := portion{
		micro: tokens / r.batch.Unit, length: r.length.Length(p.Step + 1), tokens: int64(tokens),
		position: p.Updates + 1, lr: 1,
	}
	if r.batch.Stages == nil {
		return n
	}
	n.position = int(p.Applied) + tokens
	switch part := float64(tokens) / float64(r.batch.Full); r.rule {
	case "sqrt": // Malladi et al. 2022, arXiv 2205.10287, for Adam
		n.lr = math.Sqrt(part)
	case "linear": // Goyal et al. 2017, arXiv 1706.02677, for SGD
		n.lr = part
	}
	return n
}
