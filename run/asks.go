package run

// asks are what the ranks of a run ask of each other in every step (train.Trainer.Ask). Clocks and signals differ from
// rank to rank; all act after the same step, because each acts on what any of them asked for.
type asks uint64

const (
	askStop    asks = 1 << iota // a signal, or the caller, ends the run
	askSave                     // somebody wants a checkpoint
	askTime                     // train.minutes are over
	askWriting                  // this rank is writing its part of a checkpoint
	askFailed                   // it could not write it
)
