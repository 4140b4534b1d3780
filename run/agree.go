package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"anneal/comm"
)

// group is one rank's view of the ranks of a run. Rank 0 leads: only it writes the run directory, decides and reports
// to the user. Before anything is written, and whenever only the leader acts, the other ranks wait for the outcome.
type group struct {
	comm.Comm
	code func(error) int // the exit code that an error deserves; nil if no process ends with it
}

// group returns the ranks of a run.
func (o *Options) group() group { return group{o.World, o.ExitCode} }

func (g group) leads() bool { return g.Rank() == 0 }
func (g group) alone() bool { return g.Size() == 1 }

// An agreedError is an error that every rank knows of, so that no rank waits for another.
type agreedError struct {
	err  error
	told bool // by another rank
}

func (e *agreedError) Error() string { return e.err.Error() }
func (e *agreedError) Unwrap() error { return e.err }

// disagreed returns the error that all ranks know of as one that they do not: they know that a checkpoint failed, but
// not whether the leader ends the run with it.
func disagreed(err error) error {
	if agreed := (*agreedError)(nil); errors.As(err, &agreed) {
		return agreed.err
	}
	return err
}

// ToldElsewhere reports whether another rank of the run reports the error, so that this one need not.
func ToldElsewhere(err error) bool {
	var agreed *agreedError
	return errors.As(err, &agreed) && agreed.told
}

// Shared reports whether the ranks can still communicate after an error that all know.
func Shared(err error) bool { return Agreed(err) && !isLost(err) }

// Agreed reports whether every rank knows of an error.
func Agreed(err error) bool {
	var agreed *agreedError
	return errors.As(err, &agreed)
}

// A RankError is an error reported by another rank.
type RankError struct {
	Rank int
	Code int // the exit code of its process (Options.ExitCode); 0 if unknown
	Err  error
}

func (e *RankError) Error() string { return e.Err.Error() }
func (e *RankError) Unwrap() error { return e.Err }

// Agree waits for all ranks and returns an error unless all succeeded; err is the result of this rank's own work. One
// rank returns its own error; for the others ToldElsewhere is true. code gives the exit code of an error.
func Agree(world comm.Comm, err error, code func(error) int) error {
	return group{world, code}.agree(err)
}

// Abort ends the group because this rank fails with err.
func Abort(world comm.Comm, err error, code func(error) int) { group{world, code}.abort(err) }

// outcome is a rank's report of its work.
type outcome struct {
	Error string          `json:"error,omitempty"`
	Code  int             `json:"code,omitempty"` // exit code
	Value json.RawMessage `json:"value,omitempty"`
}

// outcome returns the outcome of work that failed, or did not.
func (g group) outcome(err error) outcome {
	if err == nil {
		return outcome{}
	}
	return outcome{Error: err.Error(), Code: g.codeOf(err)}
}

func (g group) codeOf(err error) int {
	if g.code == nil {
		return 0
	}
	return g.code(err)
}

// from is the error of another rank.
func (o *outcome) from(rank int) *RankError {
	return &RankError{rank, o.Code, errors.New(o.Error)}
}

// agree waits for all ranks and returns an error unless all succeeded; err is the result of this rank's own work. If
// several ranks fail, the error of the lowest rank is reported, with the number of the rank unless it leads.
func (g group) agree(err error) error {
	if g.alone() || isLost(err) {
		return err
	}
	if unfit := (*UnfitError)(nil); err != nil && !g.leads() && !errors.As(err, &unfit) {
		err = fmt.Errorf("rank %d (%s): %w", g.Rank(), hostname(), err)
	}
	all, lost := share(g, g.outcome(err))
	if lost != nil {
		return lost
	}
	for rank := range all {
		switch {
		case all[rank].Error == "":
		case rank == g.Rank():
			return &agreedError{err, false}
		default:
			return &agreedError{all[rank].from(rank), true}
		}
	}
	return nil
}

// same marks an error that every rank has found by itself. The leader reports it.
func (g group) same(err error) error {
	if err == nil || g.alone() {
		return err
	}
	return &agreedError{err, !g.leads()}
}

// lead calls a function on rank 0 while the other ranks wait.
func (g group) lead(do func() error) error {
	_, err := led(g, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// led is lead for a function that returns a value; every rank gets the value.
func led[T any](g group, do func() (T, error)) (value T, err error) {
	if g.alone() {
		return do()
	}
	var mine outcome
	if g.leads() {
		if value, err = do(); isLost(err) {
			return value, err
		} else if err != nil {
			mine = g.outcome(err)
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
		return value, &agreedError{all[0].from(0), true}
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

// An abortReason is the reason why a rank ends the group. Other processes get only its text, which begins with the
// exit code.
type abortReason struct {
	err  error
	code int
}

func (r *abortReason) Error() string { return fmt.Sprintf("exit code %d: %v", r.code, r.err) }
func (r *abortReason) Unwrap() error { return r.err }

// abort ends the group because this rank fails with err.
func (g group) abort(err error) { g.Abort(&abortReason{err, g.codeOf(err)}) }

// told is the error of a rank whose group another rank has ended.
func told(lost *comm.LostError, err error) error {
	e := &RankError{Rank: lost.Rank, Err: err}
	if reason := (*abortReason)(nil); errors.As(lost.Err, &reason) {
		e.Code = reason.code
	} else {
		fmt.Sscanf(fmt.Sprint(lost.Err), "exit code %d:", &e.Code) // 0 if the transport noticed the loss
	}
	return &agreedError{e, true}
}

// isLost reports whether the ranks can no longer communicate.
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
