package train

import (
	"math"

	"anneal/config"
	"anneal/schedule"
)

// ramps determines what each step of a run reads: the number of micro-batches and the sequence length.
type ramps struct {
	batch  schedule.BatchRamp
	length schedule.LengthRamp
	rule   string // train.batch_ramp_lr: how the learning rate follows the batch
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

// A portion is the input of one step, and its effect on the learning rate.
type portion struct {
	micro    int // micro-batches
	length   int // tokens in a sequence
	tokens   int64
	position int     // in the learning-rate schedule
	lr       float64 // factor of the rate
}

// next returns the portion of the step after p. It depends only on the counters, so a resumed run reads the same data
// as an uninterrupted one. Schedules count updates, or tokens if steps differ in size.
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
