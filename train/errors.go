package train

import "fmt"

// DivergedError means that the guard stopped a run: too many updates in a row could not be applied.
type DivergedError struct {
	Step      int
	Skips     int // in a row
	NonFinite int // of all skips, those whose loss or gradient was not finite
	LR        float64
	Dir       string
}

func (e *DivergedError) Error() string {
	what := "losses far above the recent ones"
	if e.NonFinite > 0 {
		what = fmt.Sprintf("losses or gradients that are not finite (%d so far)", e.NonFinite)
	}
	return fmt.Sprintf("training diverged at step %d: %d updates in a row were skipped because of %s\n"+
		"  the last checkpoint in %s is from before that\n"+
		"  try a lower optimizer.lr than %.3g, a longer schedule.warmup, or model.qk_norm=true", e.Step, e.Skips, what, e.Dir, e.LR)
}

// DataError means that a data set or its tokenizer cannot be used.
type DataError struct{ Err error }

func (e *DataError) Error() string { return e.Err.Error() }

func (e *DataError) Unwrap() error { return e.Err }

// MemoryError means that a run does not fit this machine.
type MemoryError struct {
	Need, Available int64 // bytes
	Detail          string
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("this run needs %.2f GiB and %.2f GiB are available\n  %s\n  try a smaller train.micro_batch, model.context or model.dim",
		float64(e.Need)/(1<<30), float64(e.Available)/(1<<30), e.Detail)
}
