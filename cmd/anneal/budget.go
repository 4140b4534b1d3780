package main

import (
	"context"
	"errors"
	"math"
	"time"

	"anneal/config"
	"anneal/dataset"
	"anneal/lab"
	"anneal/plan"
	"anneal/train"
)

// completeByBudget returns what derives a config's open keys from the budget.
func (c *trainCmd) completeByBudget(s *session) func(*config.Config) error {
	return func(cfg *config.Config) error {
		if err := checkBudget(*c.Budget); err != nil {
			return err
		}
		if err := checkBudgetData(cfg); err != nil {
			return err
		}
		dev, err := train.OpenDevice(cfg, "", 0)
		if err != nil {
			return err
		}
		defer dev.Close()
		s.notef("measuring how fast models of several sizes train")
		err = s.untilSignal(func(ctx context.Context) error {
			b, err := lab.NewBudget(ctx, c.Budget.duration(), cfg, dev, int64(c.Memory))
			if err != nil {
				return asData(err)
			}
			c.budgeted, err = b.Derive(cfg)
			return err
		})
		if errors.Is(err, plan.ErrBudget) {
			return asUsage(err)
		}
		return err
	}
}

// checkBudgetData refuses a config for which no run can be sized.
func checkBudgetData(cfg *config.Config) error {
	switch {
	case cfg.Parallel.Ranks > 1:
		return &usageError{"--budget decides how many ranks share the threads of this process",
			"remove parallel.ranks and --ranks, or set parallel.ranks=1"}
	case !cfg.HasData():
		return &usageError{"--budget needs the text to train on: data.path is missing",
			"try data.path=DIR, a directory that `anneal data build` made"}
	}
	sources, err := cfg.Sources()
	for _, x := range sources {
		if !dataset.Exists(x.Path) {
			return &usageError{x.Path + " holds no data set",
				"make one with `anneal data build --tokenizer TOKENIZER.json --out " + x.Path + " TEXT`"}
		}
	}
	return err
}

// checkBudget refuses what is no time for a run.
func checkBudget(m inMinutes) error {
	if !(m > 0) || math.IsInf(float64(m), 0) {
		return &usageError{"--budget must be a time above 0", "try --budget 30m"}
	}
	return nil
}

// printBudget prints every derived value with its rule.
func printBudget(s *session, b *plan.Budgeted) {
	if b == nil {
		return
	}
	for _, d := range b.Derived {
		s.prosef("#   ", "# %s = %s, why: %s (%s)\n", d.Key, d.Value, d.Rule, d.Source)
	}
	p := b.Predicted
	s.prosef("#   ", "# predicted: %.2f bits per byte (provisional), %s, %s of memory\n", p.BitsPerByte,
		time.Duration(p.Seconds*float64(time.Second)).Round(time.Second), memorySize(p.MemoryBytes))
}

// dryRunBudget prints what the run needs, and emits what follows from the budget.
func dryRunBudget(s *session, cfg *config.Config, memory int64, b *plan.Budgeted) error {
	p, err := foresee(cfg, memory)
	if err != nil {
		return err
	}
	printNeeds(s, cfg, p)
	if err := fits(p); err != nil {
		return err
	}
	return s.emit(b)
}
