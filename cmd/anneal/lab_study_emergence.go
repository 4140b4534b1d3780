package main

import (
	"context"
	"fmt"

	"anneal/internal/units"
	"anneal/lab/study"
)

type studyEmergenceCmd struct {
	Steps count `default:"2500" placeholder:"N" help:"Steps of each model on facts; additions take 1.6 times as many."`
	seedFlags
}

func (studyEmergenceCmd) Help() string {
	return example("anneal lab study emergence --out runs/emergence",
		"anneal lab study emergence --seeds 3 --out runs/emergence3") +
		"\n\nModels of 1,000 to 30,000 parameters learn 1,024 random facts, and others additions of four " +
		"digits. The share of right digits is a smooth measure, that of answers right as a whole a sharp " +
		"one: is what seems to emerge only in the measure (Schaeffer et al. 2023, arXiv 2304.15004)?"
}

func (c studyEmergenceCmd) Run(s *session) error {
	if c.Steps < 1 {
		return &usageError{"no steps", "try --steps 2500"}
	}
	of := func(seed int) study.EmergenceOptions {
		return study.EmergenceOptions{Seed: seed, Steps: int(c.Steps)}
	}
	return studySeeds(s, c.seedFlags, "emergence", of, func(ctx context.Context, d *study.Dir,
		o study.EmergenceOptions) (*study.Report, error) {
		r, list, err := study.Emerge(ctx, d, o)
		if err != nil {
			return nil, err
		}
		s.printf("%-8s  %5s  %10s  %12s  %13s  %14s\n", "task", "width", "parameters", "right digits", "right answers",
			"if independent")
		for _, m := range list {
			s.printf("%-8s  %5d  %10s  %12s  %13s  %14s\n", m.Task, m.Width, units.Commas(m.Parameters),
				fmt.Sprintf("%.1f %%", 100*m.Accuracy), fmt.Sprintf("%.1f %%", 100*m.Exact),
				fmt.Sprintf("%.1f %%", 100*m.Predicted))
		}
		return r, nil
	})
}
