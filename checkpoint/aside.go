package checkpoint

import (
	"errors"
	"fmt"
	"os"
)

// AsideName is the name of the subdirectory for checkpoints that SetAside removes from the run.
const AsideName = "aside"

// Before returns the newest checkpoint of a step at or before the given one whose every byte verifies, and fills
// state from it. Info.Skipped names nearer ones that do not verify. If there is none the error is ErrNone.
func (s *Store) Before(step int64, state any) (Info, error) {
	entries, err := List(s.root)
	if err != nil {
		return Info{}, err
	}
	var best *Entry // List sorts by age; here the nearest step counts, and among equal steps the newer one
	var faults []error
	bad := map[string]bool{}
	for {
		best = nil
		for i := range entries {
			e := &entries[i]
			if e.Err == nil && !bad[e.Name] && e.Step <= step && (best == nil || e.Step > best.Step) {
				best = e
			}
		}
		if best == nil {
			return Info{Skipped: faults}, s.noneBefore(step, entries, faults)
		}
		info, err := best.verify(s.root)
		if err == nil {
			_, err = best.fill(s.root, nil, state, false)
		}
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			bad[best.Name], faults = true, append(faults, err)
			continue
		}
		if err != nil {
			return Info{}, err
		}
		info.Skipped = faults
		return info, nil
	}
}

// noneBefore returns an error that lists the available steps.
func (s *Store) noneBefore(step int64, entries []Entry, faults []error) error {
	var steps []string
	for _, e := range entries {
		if e.Err == nil && e.Step > step {
			steps = append(steps, fmt.Sprint(e.Step))
		}
	}
	err := fmt.Errorf("checkpoint: %s: %w at or before step %d", s.root, ErrNone, step)
	if len(steps) > 0 {
		err = fmt.Errorf("%w\n  %s", err, there(steps))
	}
	return errors.Join(append([]error{err}, faults...)...)
}

// After lists the checkpoints of steps after the given one, usable or not: those that SetAside would move.
func (s *Store) After(step int64) ([]Entry, error) {
	entries, err := List(s.root)
	if err != nil {
		return nil, err
	}
	var later []Entry
	for _, e := range entries {
		if e.Step > step {
			later = append(later, e)
		}
	}
	return later, nil
}

// SetAside moves the checkpoints of steps after the given one to the directory aside, where they are neither loaded
// nor deleted, and returns their new paths. After an interruption it can be called again.
func (s *Store) SetAside(step int64) ([]string, error) {
	later, err := s.After(step)
	if err != nil || len(later) == 0 {
		return nil, err
	}
	if err := s.fs.Mkdir(s.path(AsideName)); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var moved []string
	for _, e := range later {
		name, err := freeName(s.path(AsideName), e.Step)
		if err != nil {
			return moved, fmt.Errorf("checkpoint: %w", err)
		}
		to := s.path(AsideName, name)
		if err := s.fs.Rename(s.path(e.Name), to); err != nil {
			return moved, fmt.Errorf("checkpoint: %w", err)
		}
		moved = append(moved, to)
	}
	return moved, errors.Join(s.fs.SyncDir(s.path(AsideName)), s.fs.SyncDir(s.root), s.pointToNewest())
}

// pointToNewest repairs the pointer to the latest checkpoint.
func (s *Store) pointToNewest() error {
	entries, err := List(s.root)
	if err != nil {
		return err
	}
	if len(entries) > 0 && entries[0].Err == nil {
		return s.publish(entries[0].Name)
	}
	if err := s.fs.Remove(s.path("latest")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
