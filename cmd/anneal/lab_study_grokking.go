package main

import (
	"context"
	"fmt"

	"anneal/internal/units"
	"anneal/lab/study"
)

type studyGrokkingCmd struct {
	Seeds count `default:"2" placeholder:"N" help:"Models with weight decay. One without is the control."`
	Steps count `default:"2500" placeholder:"N" help:"Steps of each model."`
	studyFlags
}

func (studyGrokkingCmd) Help() string {
	return example("anneal lab study grokking --out runs/grokking", "anneal lab study grokking --seeds 6 "+
		"--out runs/grok6") +
		"\n\nA model of one layer learns two fifths of the sums modulo 47. It has memorised them after some " +
		"hundred steps, and gets the other sums right a thousand steps or more later (Power et al. 2022, " +
		"arXiv 2201.02177), with weight decay. Shown are the accuracies, the norm of the weights, " +
		"and how few frequencies hold the power of the numbers' embeddings (Nanda et al. 2023, arXiv 2301.05217)."
}

func (c studyGrokkingCmd) Run(s *session) error {
	if c.Seeds < 1 || c.Steps < 200 {
		return &usageError{fmt.Sprintf("--seeds %d --steps %d: want at least one model with decay and 200 steps",
			c.Seeds, c.Steps), "try --seeds 1 --steps 2500; models generalise after 1,200 to 1,700 steps"}
	}
	o := study.GrokkingOptions{Seeds: int(c.Seeds), Steps: int(c.Steps)}
	return c.study(s, "grokking", o, func(ctx context.Context, d *study.Dir) (*study.Report, error) {
		s.notef("%d models of %s steps, as many at a time as there are cores", o.Seeds+1, units.Commas(o.Steps))
		r, runs, err := study.Grok(ctx, d, o)
		if err != nil {
			return nil, err
		}
		s.printf("%-10s  %6s  %12s  %14s  %16s\n", "model", "decay", "99 % trained", "99 % held out", "held out at end")
		for _, g := range runs {
			s.printf("%-10s  %6g  %12s  %14s  %15.1f%%\n", g.Name, g.Decay, stepOrNever(g.Memorised),
				stepOrNever(g.Generalised), 100*g.Val[len(g.Val)-1])
		}
		return r, nil
	})
}

// stepOrNever writes a step, or that it was never reached.
func stepOrNever(step int) string {
	if step == 0 {
		return "never"
	}
	return "step " + units.Commas(step)
}
