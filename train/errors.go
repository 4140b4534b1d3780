package train

import (
	"fmt"

	"anneal/internal/shellword"
	"anneal/internal/units"
)

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
	return fmt.Sprintf("%v\n  training stopped after step %d; nothing since the last checkpoint is saved\n"+
		"  continue from that checkpoint with `anneal resume %s`", e.Err, e.Step,
		shellword.Command(e.Dir))
}

func (e *DeviceError) Unwrap() error { return e.Err }

// MemoryError means that a run does not fit in this machine's memory.
type MemoryError struct {
	Need, Available int64 // bytes
	Detail          string
	Enough          string // a clause that names devices with enough memory; "" if none is known
	Offloading      int64  // bytes that it needs with memory.offload=optimizer, if these are available; else 0
}

func (e *MemoryError) Error() string {
	enough := ""
	if e.Enough != "" {
		enough = "\n  " + e.Enough
	}
	offload := ""
	if e.Offloading > 0 {
		offload = ",\n  or memory.offload=optimizer: with its state in a file the run needs " +
			units.FormatBytes(e.Offloading)
	}
	return fmt.Sprintf("this run needs %s of memory, but %s are available\n  %s%s\n"+
		"  try a smaller train.micro_batch, model.context or model.dim%s",
		units.FormatBytes(e.Need), units.FormatBytes(e.Available), e.Detail, enough, offload)
}
