package main

import (
	"context"
	"path/filepath"
	"strings"

	"anneal/lab"
	"anneal/train"
	"anneal/train/config"
)

type trainCmd struct {
	configArgs
	Out    string `placeholder:"RUN" help:"Directory of the run; made, and refused if it holds one already."`
	DryRun bool   `help:"Print the resolved config and what the run will need, and stop."`
}

func (trainCmd) Help() string {
	return example("anneal train examples/tiny.yaml data.path=data/go train.steps=500 --out runs/go",
		"anneal train examples/tiny.yaml data.path=data/go --dry-run") +
		"\n\nCtrl-C saves and says how to go on; a second one stops at once. `anneal explain` lists the keys."
}

func (c trainCmd) Run(s *session) error {
	cfg, err := config.Load(c.Config, c.Overrides)
	if err != nil {
		return err
	}
	if c.DryRun {
		return dryRun(s, cfg)
	}
	if c.Out == "" {
		return &usageError{"train needs a directory for the run", "try --out runs/" + runName(c.Config)}
	}
	plan, err := s.header(cfg)
	if err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		r, err := train.Run(ctx, train.Options{
			Config: cfg, Dir: c.Out, OnProgress: s.trainProgress(cfg.Train.LogEvery), Warn: s.warn,
		})
		if err != nil {
			return err
		}
		return s.finishRun(r, c.Out, plan)
	})
}

func runName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// printRamps says how steps grow and sequences lengthen, if they do.
func printRamps(s *session, cfg *config.Config) {
	if ramp, err := cfg.BatchRamp(); err == nil && ramp.Stages != nil {
		until := ramp.Steps(ramp.Stages[len(ramp.Stages)-1].Until)
		s.printf("# %s tokens a step, all of them from step %s on; the schedule goes by tokens\n", stepTokens(cfg), thousands(int64(until+1)))
	}
	if ramp, err := cfg.LengthRamp(); err == nil && ramp.Steps > 0 {
		s.printf("# sequences of %d to %d tokens, the whole context from step %s on\n", ramp.Length(1), ramp.Full, thousands(int64(ramp.Steps+1)))
	}
}

// dryRun prints what would run: the resolved config, then parameters and memory.
func dryRun(s *session, cfg *config.Config) error {
	p, err := lab.Foresee(cfg)
	if err != nil {
		return err
	}
	s.printf("%s\n", cfg.YAML())
	s.printf("# %s parameters, %.3g FLOPs per token, %s tokens in all (%.2f times the data)\n",
		thousands(p.Parameters), p.FLOPsPerToken, thousands(p.Tokens), p.Epochs)
	printRamps(s, cfg)
	for _, i := range p.Memory {
		s.printf("#   %-14s %10s  %s\n", i.Name, mebibytes(i.Bytes), i.Note)
	}
	s.printf("#   %-14s %10s  of %s available\n", "total", mebibytes(p.Memory.Total()), mebibytes(p.Available))
	for _, remark := range p.Remarks() {
		s.printf("# %s\n", remark)
	}
	if !p.Fits {
		return &train.MemoryError{Need: p.Bytes, Available: p.Available, Detail: "the parts are listed above"}
	}
	return s.emit(p)
}
