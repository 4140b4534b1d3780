package main

import (
	"context"
	"fmt"

	"anneal/lab/study"
)

type studyForgettingCmd struct {
	Seed  count `default:"1" placeholder:"N" help:"Of weights and order."`
	Steps count `default:"1500" placeholder:"N" help:"Steps of each task."`
	studyFlags
}

func (studyForgettingCmd) Help() string {
	return example("anneal lab study forgetting --out runs/forgetting") +
		"\n\nA model learns additions of three digits, then subtractions with 0, 1, 5 or 25 % of the additions " +
		"among them. How much of the first task is left, and when does it go?"
}

func (c studyForgettingCmd) Run(s *session) error {
	if c.Steps < 10 {
		return &usageError{fmt.Sprintf("%d steps of each task say nothing", c.Steps), "try --steps 1500"}
	}
	o := study.ForgettingOptions{Seed: int(c.Seed), Steps: int(c.Steps)}
	return c.study(s, "forgetting", o, func(ctx context.Context, d *study.Dir) (*study.Report, error) {
		r, list, err := study.Forget(ctx, d, o)
		if err != nil {
			return nil, err
		}
		s.printf("%8s  %16s  %15s  %9s  %12s\n", "replayed",
			"additions before", "additions after", "forgotten", "subtractions")
		for _, f := range list {
			s.printf("%8s  %16s  %15s  %9s  %12s\n", fmt.Sprintf("%g %%", 100*f.Replay),
				fmt.Sprintf("%.1f %%", 100*f.Before), fmt.Sprintf("%.1f %%", 100*f.After),
				fmt.Sprintf("%.1f %%", 100*f.Forgotten()), fmt.Sprintf("%.1f %%", 100*f.Second))
		}
		return r, nil
	})
}
