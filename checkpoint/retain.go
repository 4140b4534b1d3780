package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"regexp"
)

// leftover matches the remains of a killed save or deletion.
var leftover = regexp.MustCompile(`^(step-\d{8,}(-\d+)?|latest)\.tmp-[0-9a-f]{8}$`)

// sweep removes leftovers. The lock is held, so no other save is in progress.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !leftover.MatchString(e.Name()) {
			continue
		}
		if err := s.fs.RemoveAll(s.path(e.Name())); err != nil {
			return fmt.Errorf("cannot remove an unfinished checkpoint: %w", err)
		}
		s.opt.Log.Debug("removed an unfinished checkpoint", "name", e.Name())
	}
	return nil
}

// prune keeps the newest Keep readable checkpoints that did not fail verification, one per step, and deletes older
// ones. It runs directly after a commit, whose checkpoint is the newest and is always kept, so at least one good one
// remains. Checkpoints of a newer format are not deleted.
func (s *Store) prune() {
	entries, err := List(s.root)
	if err != nil {
		s.opt.Log.Warn("old checkpoints are not deleted", "error", err)
		return
	}
	steps := map[int64]bool{}
	for _, e := range entries {
		good := e.Err == nil && !s.bad[e.Name]
		if good && !steps[e.Step] && len(steps) < s.opt.Keep {
			steps[e.Step] = true
			continue
		}
		if errors.Is(e.Err, ErrFuture) || len(steps) < s.opt.Keep && !steps[e.Step] {
			continue
		}
		if err := s.remove(e.Name); err != nil {
			s.opt.Log.Warn("cannot delete an old checkpoint", "name", e.Name, "error", err)
		}
	}
}

// remove deletes a checkpoint. It is renamed first, in one step, so that no process sees a partly deleted checkpoint.
func (s *Store) remove(name string) error {
	tmp := s.path(tempName(name))
	if err := s.fs.Rename(s.path(name), tmp); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.root); err != nil {
		return err
	}
	return s.fs.RemoveAll(tmp)
}
