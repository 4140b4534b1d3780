package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"anneal/lab"
)

type mupCmd struct {
	Check mupCheckCmd `cmd:"" help:"Train several widths for a few steps: do activations keep their size as the width grows?"`
	Sweep mupSweepCmd `cmd:"" help:"Train several widths at several learning rates: does the best rate stay where it is?"`
}

type mupCheckCmd struct {
	configArgs
	Widths   []int  `placeholder:"D" help:"Values of model.dim. Default: four, from about 64, each twice the last."`
	Steps    int    `default:"3" help:"Number of updates. Activations are measured before the first and after each."`
	Seeds    int    `default:"3" help:"Runs per width; their activations are averaged."`
	LR       amount `name:"lr" placeholder:"LR" help:"Learning rate of the narrowest model. Default: optimizer.lr."`
	Standard bool   `help:"Check the standard parametrisation instead: it fails, as it should."`
	Random   bool   `help:"Train on random tokens instead of the config's data."`
	svgFlag
}

func (mupCheckCmd) Help() string {
	return example("anneal mup check examples/mup.yaml --svg check.svg",
		"anneal mup check examples/mup.yaml --random --standard") +
		"\n\nThe narrowest width is the base model; heads keep their size, and the feed-forward layer its ratio. " +
		"Exit code 7: activations grow or shrink with the width."
}

func (c mupCheckCmd) Run(s *session) error {
	start := time.Now()
	c.remark(s)
	if c.Steps < 1 || c.Seeds < 1 {
		return &usageError{"mup check needs at least one step and one seed",
			"leave out --steps and --seeds to use 3 of each"}
	}
	o := lab.CoordinateOptions{
		Family: lab.Family{Config: c.Config, Overrides: c.Overrides, Widths: c.Widths, Standard: c.Standard},
		Random: c.Random, Steps: c.Steps, Seeds: c.Seeds, LR: float64(c.LR),
	}
	o.OnRun = func(text string) { s.status.update(func(int) string { return text }) }
	return s.whileTraining(func(ctx context.Context) error {
		r, err := lab.CheckCoordinates(ctx, o)
		var bad *lab.NotFlatError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		printCoordinates(s, r)
		if e := s.draw(r.Chart(), c.SVG); e != nil {
			return e
		}
		if err != nil {
			return err
		}
		elapsed := time.Since(start)
		s.printf("flat: no activation changes with the width\n")
		s.closing(fmt.Sprintf("%d widths checked, nothing written", len(r.Widths)), "", elapsed,
			command(append([]string{"anneal", "mup", "sweep", c.Config}, c.Overrides...)...))
		return s.emit(struct {
			*lab.Coordinates
			Seconds float64 `json:"seconds"`
		}{r, elapsed.Seconds()})
	})
}

// printCoordinates prints the table of a check.
func printCoordinates(s *session, r *lab.Coordinates) {
	s.printf("%s, %d layers, rate %.2g at width %d: mean |activation|\n",
		lab.Parametrisation(r.Standard), r.Layers, r.LR, r.Widths[0])
	s.printf("%-10s %8s", "", "updates")
	for _, w := range r.Widths {
		s.printf(" %9d", w)
	}
	s.printf("  %s\n", "~ width^")
	for _, a := range r.Rows {
		s.printf("%-10s %8d", a.Tensor, a.Step)
		for _, x := range a.Size {
			s.printf(" %9.4g", x)
		}
		verdict := ""
		if !a.Flat {
			verdict = "  not flat"
		}
		s.printf("  %8.2f%s\n", a.Slope, verdict)
	}
}
