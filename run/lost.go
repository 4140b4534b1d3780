package run

import (
	"errors"
	"fmt"
	"strings"

	"anneal/comm"
)

// A LostError means that the ranks of a run could not go on together: one was killed, hangs, or failed.
type LostError struct {
	Step   int      // in hand
	Waits  string   // what this rank waited for, if its deadline passed
	Behind []string // ranks that had not come to it
	Err    *comm.LostError

	dir runDir
}

func (e *LostError) Error() string {
	what := e.Err.Error()
	if e.Err.For > 0 && len(e.Behind) > 0 {
		what = fmt.Sprintf("%s did not come to %s for %v", strings.Join(e.Behind, ", "), e.Waits, e.Err.For)
	}
	remedy := fmt.Sprintf("there is no checkpoint yet: `anneal resume %s` starts over", e.dir)
	if step, ok := e.dir.lastCheckpoint(); ok {
		remedy = fmt.Sprintf("the run has its checkpoint of step %d: continue with `anneal resume %s`, "+
			"on any number of ranks", step, e.dir)
	}
	return fmt.Sprintf("step %d: %s\n  %s", e.Step, what, remedy)
}

func (e *LostError) Unwrap() error { return e.Err }

// lost says where the run stood when a rank was lost; another error stays as it is.
func (s *session) lost(err error) error {
	var gone *comm.LostError
	if !errors.As(err, &gone) {
		return err
	}
	e := &LostError{Step: s.look.step(), Err: gone, dir: s.dir}
	if gone.For > 0 {
		e.Waits, e.Behind = s.look.behind(s.dir, s.world.Size(), gone.Rank)
	}
	return e
}
