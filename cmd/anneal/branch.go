package main

import (
	"context"
	"time"

	"anneal/config"
	"anneal/plan"
	"anneal/run"
)

type branchCmd struct {
	runArg
	Overrides []string `arg:"" optional:"" name:"section.key=value" help:"Values that differ from those of the run, such as train.steps=2000."`
	At        *count   `placeholder:"STEP" help:"Step of the checkpoint to start from. Default: the last one before train.steps up to which both runs have the same samples and schedules."`
	Out       string   `placeholder:"RUN" required:"" help:"Directory of the new run. It must be new or empty."`
	rankFlags
	runThreadsFlag
}

func (branchCmd) Help() string {
	return example("anneal branch runs/long train.steps=2000 --out runs/decayed-2000",
		"anneal branch runs/long --at 1600 schedule.name=wsd schedule.decay_fraction=0.2 train.steps=2000 --out "+
			"runs/decayed-2000") +
		"\n\nFrom the stable phase of one wsd or constant run, branches decay to models of several lengths. " +
		"Each is the same,\nbit for bit, as a run of its config.yaml from the start; a warning says if it is not, " +
		"because of --at, of other values\nor of an earlier change of the run's config.yaml. The original run does " +
		"not change; its checkpoint.keep says how many\ncheckpoints there are to branch from."
}

func (c branchCmd) Run(s *session) error {
	start := time.Now()
	if err := s.join(&c.rankFlags); err != nil {
		return err
	}
	cfg, plan, step, err := c.prepare(s)
	if err := s.together(err); err != nil {
		return err
	}
	o := s.trainOptions(c.Out, cfg)
	o.Config, o.Threads, o.Plan = cfg, int(c.Threads), plan
	return s.whileTraining(func(ctx context.Context) error {
		r, err := run.Branch(ctx, o, c.Dir, step)
		if err != nil {
			return err
		}
		return s.finishRun(r, finished{dir: c.Out, plan: plan, elapsed: time.Since(start), next: useOf(c.Out, cfg)})
	})
}

// prepare reads the config of the branch, finds the step where it begins, and prints what is about to run.
func (c branchCmd) prepare(s *session) (*config.Config, *plan.Foresight, int, error) {
	overrides, err := s.rankOverrides(c.rankFlags, c.Overrides)
	if err != nil {
		return nil, nil, 0, err
	}
	cfg, err := run.BranchConfig(c.Dir, overrides)
	if err != nil {
		return nil, nil, 0, err
	}
	if s.world.Rank() == 0 {
		if err := run.CheckNewRun(c.Out); err != nil {
			return nil, nil, 0, err
		}
	}
	var step int
	if c.At != nil {
		step = int(*c.At)
	} else if step, err = run.BranchPoint(c.Dir, cfg); err != nil {
		return nil, nil, 0, err
	}
	if err := run.CheckBranch(cfg, step); err != nil {
		return nil, nil, 0, err
	}
	plan, err := s.header(cfg, int(c.Threads))
	if err != nil {
		return nil, nil, 0, err
	}
	s.notef("branching off %s at step %d", c.Dir, step)
	return cfg, plan, step, nil
}
