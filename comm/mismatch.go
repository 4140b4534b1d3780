package comm

import "fmt"

// A MismatchError means that ranks do not run the same program: they make different calls, or the same call with
// tensors of different shapes.
type MismatchError struct {
	Rank, Other  int    // who differ
	Mine, Theirs string // what Rank does or expects, and what Other does
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("rank %d %s where rank %d %s: the ranks do not run the same program",
		e.Rank, e.Mine, e.Other, e.Theirs)
}
