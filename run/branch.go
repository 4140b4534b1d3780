package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/prepare"
)

// Branch starts a new run in o.Dir from the state that the run in from had after a step, and trains it to its end:
// one stable phase can have any number of decays, each with its own model. If the schedules are equal up to that
// step, the result is the same, bit for bit, as if the new run had been trained from the start.
func Branch(ctx context.Context, o Options, from string, step int) (*Result, error) {
	return onRanks(ctx, o, o.Config, func(ctx context.Context, o Options) (*Result, error) {
		return branch(ctx, o, from, step)
	})
}

func branch(ctx context.Context, o Options, from string, step int) (_ *Result, err error) {
	if err := CheckBranch(o.Config, step); err != nil {
		return nil, err
	}
	if err := o.group().lead(func() error { return CheckNewRun(o.Dir) }); err != nil {
		return nil, err
	}
	s, err := newSession(o.Config, o)
	if err != nil {
		return nil, err
	}
	defer s.end(&err)
	info, err := s.loadStep(runDir(from), int64(step))
	if err == nil {
		err = runDir(from).checkOrigin(info)
	}
	if err := s.adopt(runDir(from), info, s.loadError(err, runDir(from))); err != nil {
		return nil, orAtAnother(err, from)
	}
	s.warnOfAnotherPast(from)
	s.last.beginStretch(s.cfg)
	s.last.Due = false // the step at which a branch begins belongs to the other run
	if s.branchText, err = newBranchPoint(from, step); err != nil {
		return nil, err
	}
	if err := s.create(true); err != nil {
		return nil, err
	}
	return s.run(ctx)
}

// CheckBranch returns an error if a branch of cfg that begins at a step has no step to train.
func CheckBranch(cfg *config.Config, step int) error {
	if step < cfg.Train.Steps {
		return nil
	}
	return config.Problem{
		Key: "train.steps", At: cfg.Origin("train.steps").Place(),
		Message: fmt.Sprintf("train.steps = %d is not after step %d, at which the branch begins",
			cfg.Train.Steps, step),
		Try: fmt.Sprintf("train.steps = %d or more, or an earlier checkpoint with --at STEP: "+
			"`anneal ckpt ls RUN` lists them", step+1),
	}
}

// orAtAnother adds advice to an error about a damaged checkpoint: how to begin the branch at another checkpoint.
func orAtAnother(err error, from string) error {
	if fault := (*checkpoint.Fault)(nil); !errors.As(err, &fault) {
		return err
	}
	return fmt.Errorf("%w\n  --at STEP branches off another checkpoint: `anneal ckpt ls %s` lists them", err,
		runDir(from).word())
}

// loadStep loads the newest checkpoint of a step of another run. On several ranks, the leader chooses it.
func (s *session) loadStep(from runDir, step int64) (checkpoint.Info, error) {
	if s.world.alone() {
		return checkpoint.LoadStep(from.checkpoints(), step, s.tensors, &s.last)
	}
	name, err := led(s.world, func() (string, error) {
		info, err := checkpoint.LoadStepState(from.checkpoints(), step, &s.last)
		return info.Name, err
	})
	if err != nil {
		return checkpoint.Info{}, err
	}
	return checkpoint.Load(from.checkpoints(), name, s.tensors, &s.last)
}

// BranchPoint returns the step of a checkpoint of the run in from: the newest one before the end of cfg up to which a
// run of cfg would have had the same samples in the same batches, and the same schedules.
func BranchPoint(from string, cfg *config.Config) (int, error) {
	was, err := runDir(from).load()
	if err != nil {
		return 0, err
	}
	c, err := prepare.OpenCorpus(cfg)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.OpenTraining(cfg); err != nil {
		return 0, err
	}
	list, err := checkpoint.List(runDir(from).checkpoints())
	if err != nil {
		return 0, err
	}
	b := branchSearch{
		from: from, was: was, cfg: cfg, corpus: c, agree: cfg.Train.Steps - 1, best: -1, oldest: math.MaxInt,
	}
	for _, e := range list {
		b.oldest = min(b.oldest, int(e.Step))
		if e.Err != nil {
			continue
		}
		b.steps = append(b.steps, fmt.Sprint(e.Step))
		if err := b.try(int(e.Step)); err != nil {
			return 0, err
		}
	}
	return b.result()
}

// branchSearch looks for the checkpoint at which a branch begins.
type branchSearch struct {
	from     string
	was, cfg *config.Config  // of the run at present, and of the branch
	corpus   *prepare.Corpus // of the branch

	agree   int    // at most so many first steps of the run are like those of the branch
	differs string // in the step after those; "" if only the end of the branch is the limit
	changed int    // step of the last change of the run's configuration, if that is why they differ; else 0
	best    int    // step of the checkpoint; −1 if there is none
	other   error  // first error from the data check

	steps  []string // of all checkpoints
	oldest int      // of them
}

// try considers the checkpoint of a step. Newer ones have been considered before.
func (b *branchSearch) try(step int) error {
	if step > b.agree || step <= b.best {
		return nil
	}
	var then state
	_, fault := checkpoint.LoadStepState(runDir(b.from).checkpoints(), int64(step), &then)
	past := []stretch{{step, b.was}}
	if fault == nil && then.Config != nil {
		past = then.stretches()
	}
	if n, differs := agreement(past, b.cfg, step); n < step {
		b.agree, b.differs, b.changed = n, differs, 0
		last := len(past) - 1
		if now, _ := agreement([]stretch{{step, past[last].Config}}, b.cfg, step); now > n {
			b.changed = past[last-1].Until
		}
		return nil
	}
	if fault != nil {
		return orAtAnother(fault, b.from)
	}
	if err := b.corpus.Train.Check(then.Data); err == nil {
		b.best = step
	} else if b.other == nil {
		b.other = &dataset.Error{Err: err}
	}
	return nil
}

// result returns the step of the checkpoint, or why there is none.
func (b *branchSearch) result() (int, error) {
	switch {
	case len(b.steps) == 0:
		return 0, fmt.Errorf("%s: %w\n  a branch starts from a checkpoint: train the run first",
			b.from, checkpoint.ErrNone)
	case b.best < 0 && b.other != nil:
		return 0, b.other
	case b.oldest >= b.cfg.Train.Steps:
		return 0, CheckBranch(b.cfg, b.oldest)
	case b.best < 0:
		return 0, b.disagreement()
	}
	return b.best, nil
}

// disagreement says why no checkpoint is early enough.
func (b *branchSearch) disagreement() error {
	has := "checkpoints of steps " + strings.Join(b.steps, ", ")
	if len(b.steps) == 1 {
		has = "one checkpoint, of step " + b.steps[0]
	}
	changed := ""
	if b.changed > 0 {
		changed = fmt.Sprintf(". The configuration of the run was changed after step %d", b.changed)
	}
	try := "--at STEP, which gives a different result than a run from the start"
	if b.agree > 0 {
		try = "a larger train.steps, so that the decay starts later; a larger checkpoint.keep in the original run; " +
			"or " + try
	}
	return config.Problem{
		Message: fmt.Sprintf("%s and the branch are equal only up to step %d: the next step has another %s. No "+
			"checkpoint is that early: the run has %s%s", b.from, b.agree, b.differs, has, changed),
		Try: try,
	}
}
