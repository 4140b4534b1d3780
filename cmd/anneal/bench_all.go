package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"anneal/bench"
	"anneal/internal/fileio"
	"anneal/internal/units"
)

type benchAllCmd struct {
	Quick bool    `help:"Take a minute instead of a quarter of an hour: fewer cases, and less time for each."`
	Out   outFile `placeholder:"FILE" example:"bench.json" help:"Write the figures to this file, for anneal bench diff; - is standard output."`
}

func (benchAllCmd) Help() string {
	return example("anneal bench all --out before.json", "anneal bench all --quick --json | jq '.figures[0]'") +
		"\n\nRuns every benchmark of this machine's processor. A share is a figure divided by the peak of " +
		"arithmetic, the bandwidth of memory or the speed of a plain loop, which is measured right beside it. " +
		"Measure while nothing else runs."
}

func (c benchAllCmd) Run(s *session) error {
	return s.untilSignal(func(ctx context.Context) error {
		begin := time.Now()
		suite, err := bench.All(ctx, bench.SuiteOptions{
			Quick: c.Quick,
			Phase: func(name string) {
				s.printf("\n%s\n", name)
				s.status.update(func(int) string { return fmt.Sprintf("%s, %s", name, seconds(time.Since(begin))) })
			},
			Each: func(f bench.Figure) {
				s.printf("  %-50s %12s %-18s %4.0f %%\n", f.Name, figures(f.Value), f.Unit, 100*f.Share)
			},
		})
		if err != nil {
			return err
		}
		s.printf("\n%s, %s, %s: %s in %s\n", suite.CPU, suite.Kernels, units.Count(suite.Threads, "thread"),
			units.Count(len(suite.Figures), "figure"), seconds(time.Since(begin)))
		if c.Out != "" {
			err := fileio.Write(string(c.Out), func(w io.Writer) error {
				e := json.NewEncoder(w)
				e.SetIndent("", "  ")
				return e.Encode(suite)
			})
			if err != nil {
				return err
			}
			s.notef("wrote %s", c.Out)
		}
		return s.emit(suite)
	})
}

// figures spells a speed with three or more digits.
func figures(x float64) string {
	if x >= 1000 {
		return units.Commas(int64(x))
	}
	return fmt.Sprintf("%.3g", x)
}
