package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"anneal/comm"
)

// group is the ranks of a run as one of them sees them. Rank 0 leads: it alone writes the run directory, decides and
// speaks. Before anything is written, and wherever only the leader acts, the others wait to hear how it went.
type group struct{ comm.Comm }

func (g group) leads() bool { return g.Rank() == 0 }
func (g group) alone() bool { return g.Size() == 1 }

// An agreedError is an error that every rank has been told of, so that none waits for another.
type agreedError struct {
	err  error
	told bool // by another rank
}

func (e *agreedError) Error() string { return e.err.Error() }
func (e *agreedError) Unwrap() error { return e.err }

// ToldElsewhere reports whether another rank of the run says what went wrong, so that this one need not.
func ToldElsewhere(err error) bool {
	var agreed *agreedError
	return errors.As(err, &agreed) && agreed.told
}

// Shared reports whether the ranks can still speak with each other after an error that all know.
func Shared(err error) bool { return Agreed(err) && !isLost(err) }

// Agreed reports whether every rank has been told of an error.
func Agreed(err error) bool {
	var agreed *agreedError
	return errors.As(err, &agreed)
}

// Agree waits for all ranks, each with what became of its own work, and returns an error unless all went well. One rank
// has its own error; for the others ToldElsewhere holds.
func Agree(world comm.Comm, err error) error { return group{world}.agree(err) }

// outcome is what a rank says of something that it did.
type outcome struct {
	Error string          `json:"error,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// agree waits for all ranks, each with what became of its own work, and returns an error unless all went well. Of
// several errors, that of the lowest rank is told.
func (g group) agree(err error) error {
	if g.alone() || isLost(err) {
		return err
	}
	var mine outcome
	if err != nil {
		mine.Error = err.Error()
	}
	all, lost := share(g, mine)
	if lost != nil {
		return lost
	}
	for rank, other := range all {
		switch {
		case other.Error == "":
		case rank == g.Rank():
			return &agreedError{err, false}
		default:
			return &agreedError{fmt.Errorf("rank %d: %s", rank, other.Error), true}
		}
	}
	return nil
}

// same marks an error that every rank has come to by itself. The leader tells it.
func (g group) same(err error) error {
	if err == nil || g.alone() {
		return err
	}
	return &agreedError{err, !g.leads()}
}

// lead has rank 0 do something for which the others wait.
func (g group) lead(do func() error) error {
	_, err := led(g, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// led is lead for something that gives a value, which every rank gets.
func led[T any](g group, do func() (T, error)) (value T, err error) {
	if g.alone() {
		return do()
	}
	var mine outcome
	if g.leads() {
		if value, err = do(); err != nil {
			if isLost(err) {
				return value, err
			}
			mine.Error = err.Error()
		} else if mine.Value, err = json.Marshal(value); err != nil {
			return value, err
		}
	}
	all, lost := share(g, mine)
	switch {
	case lost != nil:
		return value, lost
	case err != nil:
		return value, &agreedError{err, false}
	case all[0].Error != "":
		return value, &agreedError{fmt.Errorf("rank 0: %s", all[0].Error), true}
	case g.leads():
		return value, nil
	}
	return value, json.Unmarshal(all[0].Value, &value)
}

// share gives every rank's message to all, by rank.
func share[T any](g group, mine T) ([]T, error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	texts, err := g.Share(text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for rank, text := range texts {
		if err := json.Unmarshal(text, &all[rank]); err != nil {
			return nil, fmt.Errorf("what rank %d says cannot be read: %w", rank, err)
		}
	}
	return all, nil
}

// isLost reports whether the ranks can no longer speak with each other.
func isLost(err error) bool {
	var lost *comm.LostError
	var mismatch *comm.MismatchError
	return errors.As(err, &lost) || errors.As(err, &mismatch)
}

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown host"
	}
	return host
}
