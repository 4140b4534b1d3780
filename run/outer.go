package run

import (
	"errors"
	"fmt"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/train"
)

// Groups that step separately (parallel.outer) each have their own weights, optimizer and counters. A checkpoint holds
// the tensors of group k > 0 under names that begin with "replica.k.", and their counters in state.Groups.

// groupStates returns the counters of all groups but the first; nil without groups. All ranks call it.
func (s *session) groupStates() ([]train.State, error) {
	if !s.cfg.Parallel.Outer.On() {
		return nil, nil
	}
	all, err := share(s.world, s.trainer.State())
	if err != nil {
		return nil, err
	}
	return all[1:s.cfg.Parallel.Outer.Groups], nil // rank k is the first of group k
}

// restored returns the counters of this rank's group in the checkpoint just loaded.
func (s *session) restored() train.State {
	if o := s.cfg.Parallel.Outer; o.On() && s.world.Rank()%o.Groups > 0 {
		return s.last.Groups[s.world.Rank()%o.Groups-1]
	}
	return train.State{Position: s.last.Progress, Guard: s.last.Guard, LossScale: s.last.LossScale}
}

// checkGroups refuses to continue with a number of groups other than that of the state.
func (s *state) checkGroups(o config.Outer, dir runDir) error {
	was, now := len(s.Groups)+1, max(o.Groups, 1)
	if was == now {
		return nil
	}
	p := config.Problem{
		Key: "parallel.outer.groups", At: dir.config(),
		Message: fmt.Sprintf("parallel.outer.groups = %d, but the checkpoint is of %d groups, each with weights and "+
			"an optimizer of its own", now, was),
		Try: fmt.Sprintf("parallel.outer.groups = %d, or `anneal train CONFIG --init-from %s --out RUN`, which starts "+
			"a run from the weights", was, dir.word()),
	}
	if was == 1 {
		p.Message = fmt.Sprintf("parallel.outer.groups = %d, but the checkpoint is of a run without groups", now)
		p.Try = fmt.Sprintf("parallel.outer.groups = 0, or `anneal train CONFIG --init-from %s --out RUN`, which "+
			"starts a run from the weights", dir.word())
	}
	return p
}

// loadError explains why the state of a run in dir cannot be loaded into this run: it has another number of groups,
// another optimizer, or another model.
func (s *session) loadError(err error, dir runDir) error {
	var last state
	if !errors.Is(err, checkpoint.ErrOtherModel) {
		return err
	}
	if _, err := checkpoint.LoadState(dir.checkpoints(), &last); err == nil {
		if err := last.checkGroups(s.cfg.Parallel.Outer, dir); err != nil {
			return s.pointed(err)
		}
	}
	err = asConfigError(err, s.cfg.Model, dir)
	const key = "optimizer.name"
	p, now := config.Problem{}, s.cfg.Optimizer.Name
	if was := last.Config; errors.As(err, &p) && p.Key == "" && was != nil && was.Optimizer.Name != now {
		err = config.Problem{
			Key: key, At: dir.config(),
			Message: fmt.Sprintf("%s = %s, but the checkpoint has the state of %s", key, now, was.Optimizer.Name),
			Try: fmt.Sprintf("%s = %s, or `anneal train CONFIG --init-from %s --out RUN`, which starts a run from "+
				"the weights", key, was.Optimizer.Name, dir.word()),
		}
	}
	return s.pointed(err)
}
