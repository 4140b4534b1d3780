package run

// asks are the requests that the ranks of a run exchange in every step (train.Trainer.Ask). Clocks and signals differ
// from rank to rank, but each rank acts on the requests of all, so all act after the same step.
type asks uint64

const (
	askStop    asks = 1 << iota // a signal, or the caller, ends the run
	askSave                     // a checkpoint was requested
	askTime                     // train.minutes are over
	askWriting                  // this rank is writing its part of a checkpoint
	askFailed                   // it could not write it
)
