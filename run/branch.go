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
	"anneal/train"
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
	return fmt.Errorf("%w\n  --at STEP branches off another checkpoint: `anneal ckpt ls %s` lists them", err, from)
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
	newest, oldest := 0, math.MaxInt
	for _, e := range list {
		newest, oldest = max(newest, int(e.Step)), min(oldest, int(e.Step))
	}
	agree, best := agreement(was, cfg, min(newest, cfg.Train.Steps-1)), -1
	var steps []string
	var other error // first error from the data check
	for _, e := range list {
		if e.Err != nil {
			continue
		}
		steps = append(steps, fmt.Sprint(e.Step))
		if int(e.Step) > agree || int(e.Step) <= best {
			continue
		}
		var then state
		if _, err := checkpoint.LoadStepState(runDir(from).checkpoints(), e.Step, &then); err != nil {
			return 0, orAtAnother(err, from)
		}
		if err := c.Train.Check(then.Data); err == nil {
			best = int(e.Step)
		} else if other == nil {
			other = &dataset.Error{Err: err}
		}
	}
	switch {
	case len(steps) == 0:
		return 0, fmt.Errorf("%s: %w\n  a branch starts from a checkpoint: train the run first",
			from, checkpoint.ErrNone)
	case best < 0 && other != nil:
		return 0, other
	case oldest >= cfg.Train.Steps:
		return 0, CheckBranch(cfg, oldest)
	case best < 0:
		has := "checkpoints of steps " + strings.Join(steps, ", ")
		if len(steps) == 1 {
			has = "one checkpoint, of step " + steps[0]
		}
		return 0, config.Problem{
			Message: fmt.Sprintf("the schedules of %s and of the branch are equal only up to step %d, "+
				"and no checkpoint is that early: the run has %s", from, agree, has),
			Try: "a larger train.steps, so that the decay starts later; a larger checkpoint.keep in the " +
				"original run; or --at STEP, which gives a different result than a run from the start",
		}
	}
	return best, nil
}

// agreement returns for how many first steps, at most limit, two runs have the same batches and the same scheduled
// values: learning rate, momentum and weight decay.
func agreement(a, b *config.Config, limit int) int {
	x, y := train.NewRamps(a), train.NewRamps(b)
	p, q := train.NewSchedule(a), train.NewSchedule(b)
	var at train.Position
	for at.Step < limit {
		m, n := x.Next(at), y.Next(at)
		update := at.Updates + 1
		if m != n || a.Optimizer.LR*p.Factor(m.Position) != b.Optimizer.LR*q.Factor(n.Position) ||
			train.Momentum(a, update) != train.Momentum(b, update) ||
			train.DecayLeft(a, update) != train.DecayLeft(b, update) {
			break
		}
		at.Step, at.Updates, at.Tokens, at.Applied = at.Step+1, at.Updates+1, at.Tokens+m.Tokens, at.Applied+m.Tokens
	}
	return at.Step
}

// warnOfAnotherPast warns if a branch differs from a run of its configuration from the start.
func (s *session) warnOfAnotherPast(from string) {
	was, step := s.last.Config, s.last.Progress.Step
	if was == nil {
		return
	}
	if n := agreement(was, s.cfg, step); n < step {
		s.Warn(fmt.Sprintf("from step %[2]d on, %[1]s used another learning rate, momentum, weight decay or batch "+
			"size than this schedule: the branch will not end like a run from the start", from, n+1))
	}
	var list []string
	for _, c := range Changes(was, s.cfg) {
		if !strings.HasPrefix(c, "schedule.") && !strings.HasPrefix(c, "train.steps") {
			list = append(list, c)
		}
	}
	if len(list) > 0 {
		s.Warn("besides the schedule, the branch changes\n  " + strings.Join(list, "\n  "))
	}
}
