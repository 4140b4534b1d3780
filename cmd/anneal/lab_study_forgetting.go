package main

import (
	"context"
	"fmt"

	"anneal/lab/study"
)

type studyForgettingCmd struct {
	Steps count `default:"1500" placeholder:"N" help:"Steps of each task."`
	Text  count `default:"500" name:"text-steps" placeholder:"N" help:"Steps of each real text; 0 leaves them out."`
	seedFlags
}

func (studyForgettingCmd) Help() string {
	return example("anneal lab study forgetting --out runs/forgetting",
		"anneal lab study forgetting --seeds 3 --out runs/forgetting3") +
		"\n\nA model learns additions of three digits, then subtractions with 0, 1, 5 or 25 % of the additions " +
		"among them, or with elastic weight consolidation (init.ewc). How much of the first task is left, and when " +
		"is it lost? Then another model learns the code of the Go standard library, and its comments after that."
}

func (c studyForgettingCmd) Run(s *session) error {
	if c.Steps < 10 {
		return &usageError{fmt.Sprintf("%d steps of each task say nothing", c.Steps), "try --steps 1500"}
	}
	of := func(seed int) study.ForgettingOptions {
		return study.ForgettingOptions{Seed: seed, Steps: int(c.Steps), TextSteps: int(c.Text)}
	}
	return studySeeds(s, c.seedFlags, "forgetting", of, func(ctx context.Context, d *study.Dir,
		o study.ForgettingOptions) (*study.Report, error) {
		r, found, err := study.Forget(ctx, d, o)
		if err != nil {
			return nil, err
		}
		s.printf("%-18s  %16s  %15s  %9s  %12s\n", "remedy",
			"additions before", "additions after", "forgotten", "subtractions")
		for _, f := range found.Tasks {
			s.printf("%-18s  %16s  %15s  %9s  %12s\n", f.Remedy,
				fmt.Sprintf("%.1f %%", 100*f.Before), fmt.Sprintf("%.1f %%", 100*f.After),
				fmt.Sprintf("%.1f %%", 100*f.Forgotten()), fmt.Sprintf("%.1f %%", 100*f.Second))
		}
		s.printf("\n")
		if len(found.Texts) > 0 {
			s.printf("%8s  %16s  %15s  %16s  %15s\n", "replayed", "code before", "code after", "prose before",
				"prose after")
		}
		for _, f := range found.Texts {
			s.printf("%8s  %16.3f  %15.3f  %16.3f  %15.3f  bits per byte\n", fmt.Sprintf("%g %%", 100*f.Replay),
				f.Before, f.After, f.Prose[0], f.Prose[1])
		}
		s.printf("\n")
		return r, nil
	})
}
