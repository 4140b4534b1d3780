package comm

import (
	"fmt"
	"time"
)

// A LostError means that the ranks of a run can no longer work together.
type LostError struct {
	Rank int           // the rank that was lost or failed; -1 if unknown
	Host string        // of that rank; "" if unknown
	At   string        // the operation in which this rank noticed
	For  time.Duration // how long it waited, if the deadline passed; else 0
	Err  error         // why
}

func (e *LostError) Error() string {
	who := "a rank"
	if e.Rank >= 0 {
		who = fmt.Sprintf("rank %d", e.Rank)
	}
	if e.Host != "" {
		who += " on " + e.Host
	}
	if e.For > 0 {
		return fmt.Sprintf("%s has not reached %s within %v", who, e.At, e.For)
	}
	return fmt.Sprintf("%s was lost in %s: %v", who, e.At, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }
