package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"anneal/bench"
	"anneal/machine"
)

type benchPlanCmd struct {
	Shapes    []string `arg:"" optional:"" help:"Models: demo, tiny, llama-98m, gpt2-small. Default: demo and tiny."`
	Published bool     `help:"Predict published runs on clusters, instead of steps on this machine."`
	Rows      string   `type:"existingfile" placeholder:"FILE.csv" help:"With --published: these runs instead of the built-in ones."`
	Fit       bool     `help:"With --published: fit the constants of each accelerator again."`
	Search    bool     `help:"With --published: find the best mesh of each run, and print it beside the published one."`
}

func (benchPlanCmd) Help() string {
	return example("anneal bench plan", "anneal bench plan gpt2-small --json",
		"anneal bench plan --published", "anneal bench plan --published --search",
		"anneal bench plan --published --json | jq .summary") +
		"\n\nPredicts training steps from the profile of `anneal bench machine`, and then runs them: " +
		"in BF16 and FP32, with one thread and all, with two ranks, and of demo and tiny with each way to " +
		"recompute and each optimizer. Measure while nothing else runs."
}

func (c benchPlanCmd) Run(s *session) error {
	switch {
	case c.Published && len(c.Shapes) > 0:
		return &usageError{"bench plan takes --published or models of this machine, not both", "leave one out"}
	case c.Search && c.Fit:
		return &usageError{"bench plan takes --search or --fit, not both", "leave one out"}
	case c.Published && c.Search:
		return s.publishedSearch(c.Rows)
	case c.Published:
		return s.publishedPlan(c.Rows, c.Fit)
	case c.Rows != "" || c.Fit || c.Search:
		return &usageError{"--rows, --fit and --search are for published runs", "add --published"}
	}
	return c.measured(s)
}

// measured predicts the time of steps on this machine, then runs and times them.
func (c benchPlanCmd) measured(s *session) error {
	return s.untilSignal(func(ctx context.Context) error {
		var done []bench.PlanCase
		var off []float64
		s.printf("%-11s %-5s %7s %6s  %10s %10s %7s\n", "shape", "", "threads", "ranks", "predicted", "measured", "off")
		shapes := c.Shapes
		if len(shapes) == 0 {
			shapes = []string{"demo", "tiny"}
		}
		for _, shape := range shapes {
			for _, x := range bench.PlanCases(shape) {
				x, err := bench.Plan(ctx, x)
				if errors.Is(err, machine.ErrNone) {
					return asUsage(err)
				}
				if err != nil {
					return err
				}
				done, off = append(done, x), append(off, math.Abs(x.Off))
				s.printf("%-11s %-5s %7d %6d  %10s %10s %+6.1f%%  %s\n", x.Shape, x.Precision, x.Threads, x.Ranks,
					spell(x.Predicted), spell(x.Measured), 100*x.Off, cmp.Or(x.Set, ""))
			}
		}
		slices.Sort(off)
		within := 0
		for _, x := range off {
			if x <= 0.1 {
				within++
			}
		}
		median := off[len(off)/2]
		s.printf("%s\n", fmt.Sprintf("%d of %d within 10 %%, median %.1f %%", within, len(off), 100*median))
		return s.emit(map[string]any{"cases": done, "within_10_percent": within, "median_off": median})
	})
}
