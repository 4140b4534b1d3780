package run

import (
	"cmp"
	"errors"
	"fmt"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
)

// restore loads the newest verified checkpoint into the trainer. The leader finds it, and all read it.
func (s *session) restore() error {
	var info checkpoint.Info
	from, err := led(s.world, func() (name string, err error) {
		info, err = s.loadNewest()
		return info.Name, err
	})
	if err != nil || from == "" {
		return err
	}
	if !s.world.leads() {
		info, err = checkpoint.Load(s.dir.checkpoints(), from, s.tensors, &s.last)
	}
	if err := s.adopt(s.dir, info, err); err != nil {
		return err
	}
	if s.world.leads() {
		s.warnOfChanges(info.Origin.Config != s.store.Origin().Config)
	}
	s.last.beginStretch(s.cfg)
	s.saving.step = s.trainer.Position().Step
	return nil
}

// loadNewest loads the newest verified checkpoint. If there is none, the name in its result is "".
func (s *session) loadNewest() (checkpoint.Info, error) {
	info, err := s.store.LoadLatest(s.tensors, &s.last)
	if errors.Is(err, checkpoint.ErrNone) {
		if err := s.dir.startOver(s.cfg, err); err != nil {
			return info, err
		}
		s.Warn(s.Dir + " has no checkpoint yet: starting from step 0")
		return checkpoint.Info{}, nil
	}
	if err != nil {
		return info, s.loadError(err, s.dir)
	}
	return info, s.dir.checkOrigin(info)
}

// adopt continues from the state just loaded, on all ranks, if it belongs to this model and this data; info and err
// come from loading it from the run in a directory.
func (s *session) adopt(from runDir, info checkpoint.Info, err error) error {
	if err == nil {
		err = s.checkState(from)
	}
	if err := s.world.agree(err); err != nil {
		return err
	}
	if err := s.checkHeld(from, info); err != nil {
		return err
	}
	t := s.trainer
	if here := s.dev.Kernels(); here != s.last.Tier {
		s.Warn(fmt.Sprintf("the run was trained with %s kernels so far and continues with %s: "+
			"the result is equally good, but not bit for bit that of %s", s.last.Tier, here, s.last.Tier))
	}
	if err := t.Restore(s.restored()); err != nil {
		return err
	}
	if s.cfg.Average.EMA > 0 && !info.Averaged {
		s.Warn(fmt.Sprintf("the run had no average.ema so far: it begins with the weights of step %d",
			t.Position().Step))
		t.StartAverage()
	}
	return nil
}

// checkHeld returns an error if the checkpoint just loaded has tensors that no rank holds: those of another optimizer.
// On a single rank, loading has already checked this.
func (s *session) checkHeld(from runDir, info checkpoint.Info) error {
	if s.world.alone() {
		return nil
	}
	held := info.Held(s.tensors)
	all, err := share(s.world, held)
	if err != nil {
		return err
	}
	for _, h := range all {
		held.Or(held, h)
	}
	return s.world.same(s.loadError(info.CheckHeld(held), from))
}

// checkState returns an error unless the state just loaded belongs to this model and this data.
func (s *session) checkState(from runDir) error {
	if err := s.trainer.RestoreDomains(s.last.Domains, s.Dir); err != nil {
		return err
	}
	opened := s.cfg // before it was known which batches the run has had
	err := s.last.readAs(s.cfg, func(cfg *config.Config) error {
		if cfg != opened {
			opened = cfg
			if err := s.openTraining(cfg); err != nil {
				return err
			}
		}
		return s.corpus.Train.Check(s.last.Data)
	})
	if err != nil {
		return &dataset.Error{Err: err}
	}
	if err := s.last.checkGroups(s.cfg.Parallel.Outer, from); err != nil {
		return s.pointed(err)
	}
	if at, steps := s.last.Progress.Step, s.cfg.Train.Steps; at > steps {
		return s.pointed(config.Problem{
			Key: "train.steps", Message: fmt.Sprintf("train.steps = %d, but %s is at step %d", steps, from, at),
			Try: fmt.Sprintf("%d or more, or `anneal rewind %s --to %d` first", at, from.word(), steps),
		})
	}
	return s.pointed(s.last.checkModel(s.trainer.Model().Config, from))
}

// pointed adds the origin of the key's value, which may be the command line, to a problem.
func (s *session) pointed(err error) error {
	var p config.Problem
	if !errors.As(err, &p) {
		return err
	}
	p.At = cmp.Or(s.cfg.Origin(p.Key).Place(), p.At)
	return p
}
