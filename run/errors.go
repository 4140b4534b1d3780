package run

import (
	"fmt"
)

// DivergedError means that the guard stopped a run: too many updates in a row were skipped.
type DivergedError struct {
	Step      int
	First     int     // step of the first of these skips
	Skips     int     // in a row
	NonFinite int     // how many of them had a non-finite loss or gradient
	LR        float64 // the run's optimizer.lr
	LossScale float64 // of precision fp16 at that time; 0 for other policies
	Dir       string
	Saved     bool // the run has a checkpoint
}

func (e *DivergedError) Error() string {
	what := "losses or gradients far above the recent ones (guard.spike_z)"
	switch {
	case e.NonFinite == e.Skips:
		what = "non-finite losses or gradients"
	case e.NonFinite > 0:
		what += fmt.Sprintf(", %d of them not finite", e.NonFinite)
	}
	advice := fmt.Sprintf("a lower optimizer.lr than %.3g, a longer schedule.warmup, or model.qk_norm=true", e.LR)
	if e.LossScale > 0 && e.NonFinite > 0 {
		what += fmt.Sprintf(", with the fp16 loss scale at %g, which cannot be lowered", e.LossScale)
		advice = "precision=bf16, whose range is 10³⁴ times that of fp16; or " + advice
	}
	left, to := fmt.Sprintf("the checkpoints of %s contain no skipped update", e.Dir), max(e.First-1, 0)
	if !e.Saved {
		left, to = e.Dir+" has no checkpoint yet", 0
	}
	skipped := "an update was skipped"
	if e.Skips > 1 {
		skipped = fmt.Sprintf("%d updates in a row were skipped", e.Skips)
	}
	return fmt.Sprintf("training diverged at step %d: %s because of %s\n"+
		"  %s\n"+
		"  try %s\n"+
		"  or skip these batches: `anneal rewind %s --to %d --skip %d:%d`",
		e.Step, skipped, what, left, advice, runDir(e.Dir).word(), to, e.First, e.Step)
}
