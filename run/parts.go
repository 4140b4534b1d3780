package run

import (
	"fmt"

	"anneal/checkpoint"
)

// A run on several ranks saves in parts. The leader begins a checkpoint, and every rank writes its part in the
// background and reports at the end of a step when it is done. When all ranks are done, the leader commits the
// checkpoint.

// parts is the part of this rank in the checkpoint that the ranks write together.
type parts struct {
	writer   *checkpoint.Writer // nil if this process writes alone
	underway bool               // the checkpoint is neither complete nor abandoned
	failed   error              // of this rank's part
}

// close waits until the part is no longer being written.
func (p *parts) close() {
	if p.writer != nil {
		p.writer.Close() // a part that no rank waits for is abandoned
	}
}

// asks returns the state of this rank's part as requests to the others.
func (p *parts) asks() asks {
	if !p.underway {
		return 0
	}
	if p.failed == nil {
		if !p.writer.Done() {
			return askWriting
		}
		p.failed = p.writer.Wait()
	}
	if p.failed != nil {
		return askFailed
	}
	return 0
}

// beginParts starts a checkpoint of the current step, unless it has one. All ranks call it after the same step.
func (s *session) beginParts() error {
	at := s.trainer.Position()
	groups, err := s.groupStates()
	if err != nil {
		return err
	}
	dir, err := led(s.world, func() (string, error) {
		if s.saving.step == at.Step {
			return "", nil
		}
		s.noteState()
		s.last.Groups = groups
		dir, err := s.store.Begin(int64(at.Step), at.Tokens, &s.last)
		if err != nil {
			return "", s.saveError(at.Step, err)
		}
		return dir, nil
	})
	if err != nil || dir == "" {
		return err
	}
	s.saving.step, s.saving.underway = at.Step, true
	s.parts.underway, s.parts.failed = true, s.parts.writer.Write(dir, s.owned)
	return nil
}

// joinParts waits for the parts of the checkpoint in progress, if any; then the leader commits it in the background,
// or abandons it. All ranks call it after the same step. It returns an error if a part has failed.
func (s *session) joinParts() error {
	p := &s.parts
	if !p.underway {
		return nil
	}
	if p.failed == nil {
		p.failed = p.writer.Wait()
	}
	p.underway = false
	err := s.world.agree(p.failed)
	if !s.world.leads() || isLost(err) {
		return err
	}
	if err = disagreed(err); err == nil {
		err = s.store.Commit(s.world.Size())
	} else if left := s.store.Abandon(); left != nil {
		s.Warn(fmt.Sprintf("the unfinished checkpoint of step %d could not be removed: %v", s.saving.step, left))
	}
	if err != nil {
		s.saving.underway = false
		return s.saveError(s.saving.step, err)
	}
	return nil
}
