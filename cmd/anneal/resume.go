package main

import (
	"cmp"
	"context"
	"time"

	"anneal/config"
	"anneal/plan"
	"anneal/run"
)

type resumeCmd struct {
	runArg
	Overrides []string `arg:"" optional:"" name:"parallel.key=value" help:"How ranks share the run from now on: parallel.ranks, zero, tensor, sequence, context, attention, pipeline, schedule or timeout."`
	rankFlags
	runDeviceFlag
	runThreadsFlag
}

func (resumeCmd) Help() string {
	return example("anneal resume runs/go", "anneal resume runs/go parallel.ranks=4 parallel.zero=2",
		"anneal resume runs/go parallel.tensor=2 parallel.pipeline=2") +
		"\n\nThe result is the same, bit for bit, as if the run had never stopped, on any number of ranks. " +
		"Values given here are saved in the run's config.yaml. Before the run continues on another mesh of ranks, " +
		"one line says whether this changes bits: parallel.tensor, context, sequence and attention do, because sums " +
		"come in another order; parallel.pipeline does so only if the head is tied to the embedding, and the number " +
		"of stages was 1 or becomes 1."
}

func (c resumeCmd) Run(s *session) error {
	start := time.Now()
	if err := s.join(&c.rankFlags); err != nil {
		return err
	}
	overrides, err := s.rankOverrides(c.rankFlags, c.Overrides)
	var cfg *config.Config
	var plan *plan.Foresight
	if err == nil {
		cfg, plan, err = c.prepare(s, overrides)
	}
	if err := s.together(err); err != nil {
		return err
	}
	o := s.trainOptions(c.Dir, cfg)
	o.Device, o.Threads, o.Overrides, o.Plan = c.Device, int(c.Threads), overrides, plan
	return s.whileTraining(func(ctx context.Context) error {
		r, err := run.Resume(ctx, o)
		if err != nil {
			return err
		}
		return s.finishRun(r, finished{dir: c.Dir, plan: plan, elapsed: time.Since(start), next: useOf(c.Dir, cfg)})
	})
}

// prepare reads the run's config and prints what is about to continue.
func (c resumeCmd) prepare(s *session, overrides []string) (*config.Config, *plan.Foresight, error) {
	cfg, err := run.ResumeConfig(c.Dir, overrides)
	if err != nil {
		return nil, nil, err
	}
	cfg.Device = cmp.Or(c.Device, cfg.Device)
	plan, err := s.header(run.Continued(c.Dir, cfg), int(c.Threads))
	return cfg, plan, err
}
