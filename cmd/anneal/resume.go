package main

import (
	"cmp"
	"context"
	"time"

	"anneal/run"
)

type resumeCmd struct {
	runArg
	runDeviceFlag
	runThreadsFlag
}

func (resumeCmd) Help() string {
	return example("anneal resume runs/go") +
		"\n\nThe result is the same, bit for bit, as if the run had never stopped."
}

func (c resumeCmd) Run(s *session) error {
	start := time.Now()
	cfg, err := run.ResumeConfig(c.Dir)
	if err != nil {
		return err
	}
	cfg.Device = cmp.Or(c.Device, cfg.Device)
	plan, err := s.header(cfg)
	if err != nil {
		return err
	}
	o := s.trainOptions(c.Dir, cfg)
	o.Device, o.Threads = c.Device, int(c.Threads)
	return s.whileTraining(func(ctx context.Context) error {
		r, err := run.Resume(ctx, o)
		if err != nil {
			return err
		}
		return s.finishRun(r, finished{dir: c.Dir, plan: plan, elapsed: time.Since(start), next: useOf(c.Dir, cfg)})
	})
}
