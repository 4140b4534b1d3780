package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"anneal/comm"
	"anneal/train"
)

// A LostError means that the ranks of a run could not continue together: one was killed, hangs, or failed.
type LostError struct {
	Step   int      // the current step; 0 before the first
	Waits  string   // what this rank waited for, if its deadline passed
	Behind []string // ranks that had not reached it
	Err    *comm.LostError

	dir runDir
}

func (e *LostError) Error() string {
	what := e.Err.Error()
	if e.Err.For > 0 && len(e.Behind) > 0 {
		what = fmt.Sprintf("%s did not reach %s within %v", strings.Join(e.Behind, ", "), e.Waits, e.Err.For)
	}
	when := fmt.Sprintf("step %d", e.Step)
	if e.Step == 0 {
		when = "before the first step"
	}
	return fmt.Sprintf("%s: %s\n  %s", when, what, Remedy(string(e.dir)))
}

func (e *LostError) Unwrap() error { return e.Err }

// findGone returns the gone function for Options.Begun. It checks only ranks whose processes are visible now, because
// hosts of containers may have the same name.
func (s *session) findGone() func() error {
	neighbours := map[int]Whereabouts{}
	for rank := range s.world.Size() {
		at, err := readPlace(s.dir.place(rank))
		if err == nil && at.Host == hostname() && at.PID != os.Getpid() && runs(at.PID) {
			neighbours[rank] = at
		}
	}
	return func() error {
		for rank, at := range neighbours {
			if !runs(at.PID) {
				why := fmt.Errorf("its process %d has ended", at.PID)
				return &LostError{Step: s.look.step(), dir: s.dir, Err: &comm.LostError{
					Rank: rank, Host: at.Host, At: s.look.operation(), Err: why,
				}}
			}
		}
		return nil
	}
}

// Remedy says how the run in dir continues after one of its ranks has failed.
func Remedy(dir string) string {
	step, ok := runDir(dir).lastCheckpoint()
	switch {
	case !Exists(dir):
		return "the run has not begun: give the command again"
	case !ok:
		return runDir(dir).remedyWithoutCheckpoint()
	}
	return fmt.Sprintf("the run has its checkpoint of step %d: continue with `anneal resume %s`, "+
		"on any number of ranks", step, runDir(dir).word())
}

// remedyWithoutCheckpoint is Remedy for a run without a checkpoint.
func (d runDir) remedyWithoutCheckpoint() string {
	if cfg, err := d.load(); err == nil {
		if why := d.notFromStart(cfg); why != "" {
			return why
		}
	}
	return fmt.Sprintf("there is no checkpoint yet: `anneal resume %s` starts over", d.word())
}

// An UnfitError means that a rank that a launcher started cannot take part in a run: it has too little memory, or
// differs from the others.
type UnfitError struct{ Err error }

func (e *UnfitError) Error() string { return e.Err.Error() }
func (e *UnfitError) Unwrap() error { return e.Err }

// outOfMemory marks an error that this rank, a process of its own, has too little memory. Ranks of one process share
// its memory, so their error stays as it is for any process that needs too much.
func (s *session) outOfMemory(err error) error {
	short := (*train.MemoryError)(nil)
	if s.World.InPlace() || !errors.As(err, &short) && !errors.Is(err, syscall.ENOMEM) {
		return err
	}
	return &UnfitError{fmt.Errorf("rank %d (%s) is out of memory: %w", s.world.Rank(), hostname(), err)}
}

// lostEarly is the error of a rank that ends before the run has begun, because another was lost. Ranks whose deadlines
// pass at the same time do not hear from each other, and there is no exit.json yet. The first of them to create
// ranks/told reports the error.
func (s *session) lostEarly(err error) error {
	var said *LostError
	var gone *comm.LostError
	if !errors.As(err, &gone) || errors.As(err, &said) || Agreed(err) || !s.look.opened() {
		return err
	}
	err = s.lost(err)
	f, failed := os.OpenFile(s.dir.told(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(failed, fs.ErrExist) {
		return &agreedError{&RankError{Rank: gone.Rank, Err: err}, true}
	}
	if failed == nil {
		f.Close()
	}
	return err
}

func (d runDir) told() string { return filepath.Join(d.ranks(), "told") }

// lost adds the state of the run to an error about a lost rank; other errors stay as they are.
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
