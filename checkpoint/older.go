package checkpoint

import (
	"fmt"
	"strings"
)

// OlderError says that the newest checkpoint cannot be used, and which older one can. So a caller that asked for the
// newest does not get another one silently. It unwraps to the faults.
type OlderError struct {
	Root string // where the checkpoints are
	Info        // the newest usable checkpoint; Skipped holds the faults of newer ones
}

// Newest returns an *OlderError if checkpoints under root that are newer than this one could not be used.
func (i Info) Newest(root string) error {
	if len(i.Skipped) == 0 {
		return nil
	}
	return &OlderError{root, i}
}

func (e *OlderError) Error() string {
	var b strings.Builder
	for _, fault := range e.Skipped {
		fmt.Fprintf(&b, "%v\n", fault)
	}
	fmt.Fprintf(&b, "  the newest usable checkpoint in %s is %s, of step %d: use it with --allow-older",
		e.Root, e.Name, e.Step)
	if e.Step > 0 { // 0 stands for the newest
		fmt.Fprintf(&b, ", or train from its weights with --init-step %d", e.Step)
	}
	return b.String()
}

func (e *OlderError) Unwrap() []error { return e.Skipped }
