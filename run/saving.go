package run

import (
	"errors"
	"fmt"
	"time"

	"anneal/checkpoint"
	"anneal/train"
)

// saving counts the checkpoints of a run and their failures. A checkpoint that fails in the middle of a run does not
// stop it if an earlier one exists: the run tries again after the usual number of steps.
type saving struct {
	step     int  // of the last checkpoint that was started and has not failed; −1 if none
	underway bool // the outcome of the last checkpoint is not known yet
	failures int  // checkpoints in a row that failed

	stood time.Duration // time that training has waited since the last step was reported
}

// metricsPatience is how long a checkpoint waits for the lines of its steps, so that a kill after it leaves no hole.
const metricsPatience = time.Second

// reserve prepares the memory of snapshots while the first steps run, if the run saves before its end.
func (s *session) reserve() {
	switch {
	case s.nextSave() >= s.cfg.Train.Steps:
	case s.world.alone():
		s.store.Reserve(s.ownedBytes())
	default:
		s.parts.writer.Reserve(s.ownedBytes())
	}
}

// onPhase is called when a phase of a step begins. The snapshot of a save is taken while the next step computes, and
// the update waits for it.
func (s *session) onPhase(p train.Phase) {
	if p == train.Updating {
		began := time.Now()
		if s.world.alone() {
			s.store.Copied()
		} else {
			s.parts.writer.Copied()
		}
		if s.saving.stood > 0 { // a save preceded the step
			s.saving.stood += time.Since(began)
		}
	}
	s.enter(p)
}

// saveDue starts a checkpoint in the middle of the run. It returns an error only if the run should stop.
func (s *session) saveDue() error {
	s.watch.enter(savingState)
	began := time.Now()
	defer func() {
		s.saving.stood += time.Since(began)
		s.watch.enter(idle)
	}()
	if err := s.settleParts(); err != nil {
		return err
	}
	if err := s.settleSave(); err != nil {
		return err
	}
	if err := s.save(); err != nil {
		return s.tolerate(err)
	}
	return nil
}

// settleParts waits for the parts of the checkpoint in progress, if any. It returns errors like saveDue.
func (s *session) settleParts() error {
	if err := s.joinParts(); err != nil {
		return s.tolerate(err)
	}
	return nil
}

// settleSave waits for the checkpoint in progress, if any. It returns errors like saveDue. Only the leader has a
// checkpoint in progress.
func (s *session) settleSave() error {
	if !s.saving.underway || !s.world.leads() {
		return nil
	}
	err := s.store.Wait()
	s.saving.underway = false
	if err != nil {
		return s.tolerate(s.saveError(s.saving.step, err))
	}
	s.saving.failures = 0
	s.sinks.Saved(nil)
	return nil
}

// tolerate counts a checkpoint that failed. It returns the error if the run should stop: this was the last of
// checkpoint.max_failures in a row, there is no earlier checkpoint, or trying again is pointless. The leader decides.
func (s *session) tolerate(err error) error {
	if isLost(err) {
		return err
	}
	if !s.world.leads() {
		return nil
	}
	s.saving.step = -1
	s.saving.failures++
	s.sinks.Saved(err)
	_, saved := s.dir.lastCheckpoint()
	most := s.cfg.Checkpoint.MaxFailures
	device, locked := (*train.DeviceError)(nil), (*checkpoint.LockedError)(nil)
	if s.saving.failures >= most || !saved || errors.As(err, &device) || errors.As(err, &locked) {
		return disagreed(err)
	}
	s.Warn(fmt.Sprintf("%v\n  training continues and saves again at step %d; "+
		"after %d failures in a row it stops (checkpoint.max_failures; so far %d)",
		firstLineOf(err), s.nextSave(), most, s.saving.failures))
	return nil
}

// nextSave returns the step after which the run saves next, unless a checkpoint is requested earlier.
func (s *session) nextSave() int {
	every, last := s.cfg.Checkpoint.Every, s.cfg.Train.Steps
	if every == 0 {
		return last
	}
	return min((s.trainer.Position().Step/every+1)*every, last)
}

// saveLast saves the state at the end of the run, or when it is stopped, and waits until it is on disk.
func (s *session) saveLast() error {
	s.watch.enter(savingState)
	defer s.watch.enter(idle)
	if err := s.finishSave(); err != nil {
		return err
	}
	if err := s.save(); err != nil {
		return err
	}
	failed := s.joinParts()
	if isLost(failed) {
		return failed
	}
	return s.world.lead(func() error {
		if failed != nil {
			return failed
		}
		if err := s.store.Wait(); err != nil {
			return s.saveError(s.saving.step, err)
		}
		s.saving.underway = false
		s.sinks.Saved(nil)
		return nil
	})
}

// finishSave waits for the checkpoint in progress, if any, and warns if it fails.
func (s *session) finishSave() error {
	err := s.joinParts()
	switch {
	case isLost(err):
		return err
	case !s.world.leads():
		return nil
	case err == nil && s.saving.underway:
		if err = s.store.Wait(); err != nil {
			err = s.saveError(s.saving.step, err)
		}
	}
	if err != nil {
		s.Warn(firstLineOf(err))
		s.saving.step = -1
	}
	s.saving.underway = false
	return nil
}

// noteState updates s.last, the state that a checkpoint stores besides tensors.
func (s *session) noteState() {
	t := s.trainer
	s.metrics.flush(metricsPatience)
	now := t.State()
	s.last.Progress, s.last.Data, s.last.Guard = now.Position, s.corpus.Train.State(now.Position.Sample), now.Guard
	s.last.LossScale, s.last.Domains = now.LossScale, now.Domains
	s.last.Model, s.last.Tier = t.Model().Config, s.dev.Kernels()
	s.last.Config, s.last.Tokenizer = s.cfg, s.corpus.Tokenizer.Hash()
}

// save starts a checkpoint of the current step, unless it has one.
func (s *session) save() error {
	if !s.world.alone() {
		return s.beginParts()
	}
	t := s.trainer
	if s.saving.step == t.Position().Step {
		return nil
	}
	s.noteState()
	if err := s.store.Save(int64(t.Position().Step), t.Position().Tokens, s.tensors, &s.last); err != nil {
		if failed := train.Wait(s.dev); failed != nil {
			return failed
		}
		return s.saveError(t.Position().Step, err)
	}
	s.saving.step, s.saving.underway = t.Position().Step, true
	return nil
}

// saveError explains what a failed checkpoint means for the run.
func (s *session) saveError(step int, err error) error {
	remedy := fmt.Sprintf("there is no checkpoint yet: remove the cause and run `anneal resume %s`, which starts over",
		s.dir.word())
	last, ok := s.dir.lastCheckpoint()
	switch why := s.dir.notFromStart(s.cfg); {
	case !Exists(s.Dir):
		remedy = "the run has not begun: remove the cause and give the command again"
	case ok:
		remedy = fmt.Sprintf("the run has its checkpoint of step %d: remove the cause and run `anneal resume %s`",
			last, s.dir.word())
	case why != "":
		remedy = "remove the cause; " + why
	}
	return fmt.Errorf("cannot save step %d: %w\n  %s", step, err, remedy)
}

// lastCheckpoint returns the step of the newest checkpoint; false if there is none.
func (d runDir) lastCheckpoint() (step int64, ok bool) {
	list, err := checkpoint.List(d.checkpoints())
	if err != nil {
		return 0, false
	}
	for _, e := range list {
		if e.Err == nil {
			return e.Step, true
		}
	}
	return 0, false
}
