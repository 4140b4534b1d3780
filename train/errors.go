package train

import (
	"fmt"

	"anneal/internal/units"
)

// DivergedError means that the guard stopped a run: too many updates in a row were skipped.
type DivergedError struct {
	Step      int
	Skips     int     // in a row
	NonFinite int     // of those, with a non-finite loss or gradient
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
	first := e.first()
	left, to := fmt.Sprintf("the checkpoints of %s contain no skipped update", e.Dir), max(first-1, 0)
	if !e.Saved {
		left, to = e.Dir+" has no checkpoint yet", 0
	}
	return fmt.Sprintf("training diverged at step %d: %d updates in a row were skipped because of %s\n"+
		"  %s\n"+
		"  try %s\n"+
		"  or skip these batches: `anneal rewind %s --to %d --skip %d:%d`",
		e.Step, e.Skips, what, left, advice, e.Dir, to, first, e.Step)
}

// DeviceError means that the device is unavailable, or has failed: a card was lost, or its memory ran out. Its later
// results are invalid.
type DeviceError struct {
	Err  error
	Step int    // current step of the run; 0 outside of runs
	Dir  string // of the run
}

func (e *DeviceError) Error() string {
	if e.Dir == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v\n  training stopped after step %d; nothing since the last checkpoint is saved\n  continue from that checkpoint with `anneal resume %s`", e.Err, e.Step, e.Dir)
}

func (e *DeviceError) Unwrap() error { return e.Err }

// MemoryError means that a run does not fit in this machine's memory.
type MemoryError struct {
	Need, Available int64 // bytes
	Detail          string
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("this run needs %s of memory, but %s are available\n  %s\n  try a smaller train.micro_batch, model.context or model.dim",
		units.FormatBytes(e.Need), units.FormatBytes(e.Available), e.Detail)
}
