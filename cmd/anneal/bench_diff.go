package main

import (
	"fmt"

	"anneal/bench"
	"anneal/internal/units"
)

type benchDiffCmd struct {
	Before string   `arg:"" type:"existingfile" help:"A file that anneal bench all --out wrote."`
	After  string   `arg:"" type:"existingfile" help:"Another such file, from later or from another machine."`
	Within *float64 `placeholder:"PERCENT" help:"Fail, with exit code 7, if a share fell by more than this."`
}

func (benchDiffCmd) Help() string {
	return example("anneal bench diff before.json after.json", "anneal bench diff before.json after.json --within 15") +
		"\n\nCompares shares of peaks, not speeds, so that a slower or busier machine changes little. " +
		"The largest slowdown comes first."
}

func (c benchDiffCmd) Run(s *session) error {
	if w := c.Within; w != nil && !(*w >= 0 && *w < 100) {
		return &usageError{fmt.Sprintf("--within %v is no percentage from 0 to 100", *w), "try --within 15"}
	}
	before, err := bench.ReadSuite(c.Before)
	if err != nil {
		return asData(err)
	}
	after, err := bench.ReadSuite(c.After)
	if err != nil {
		return asData(err)
	}
	d := bench.Compare(before, after)
	if len(d.Changes) == 0 {
		return asData(fmt.Errorf("%s and %s have no figure in common", c.Before, c.After))
	}
	s.printf("before: %s, %s, %s, anneal %s\nafter:  %s, %s, %s, anneal %s\n\n",
		before.CPU, before.Kernels, units.Count(before.Threads, "thread"), before.Version,
		after.CPU, after.Kernels, units.Count(after.Threads, "thread"), after.Version)
	s.printf("%-50s %10s %10s %9s\n", "", "before", "after", "")
	for _, x := range d.Changes {
		s.printf("%-50s %8.1f %% %8.1f %% %+7.1f %%\n", x.Name, 100*x.Before.Share, 100*x.After.Share, 100*(x.Ratio-1))
	}
	s.printf("\n%s in both: the middle one changed by %+.1f %%; %d only before, %d only after\n",
		units.Count(len(d.Changes), "figure"), 100*(d.Median-1), len(d.Missing), len(d.New))
	if err := s.emit(d); err != nil {
		return err
	}
	if c.Within != nil {
		return d.Check(*c.Within / 100)
	}
	return nil
}
