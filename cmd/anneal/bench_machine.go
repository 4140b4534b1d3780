package main

import (
	"context"
	"fmt"
	"time"

	"anneal/bench"
	"anneal/internal/units"
	"anneal/machine"
)

type benchMachineCmd struct{}

func (benchMachineCmd) Help() string {
	return example("anneal bench machine", "anneal bench machine --json > machine.json") +
		"\n\nTimes the kernel calls of short training steps with one thread and with all, in 90 seconds, and " +
		"keeps the result in the user's cache directory, for this processor, its kernels and this version. With it, " +
		"`anneal train --dry-run` predicts the time of a run, and runs print what was predicted beside what they " +
		"took. " +
		"Measure while nothing else runs, and again if the machine has changed."
}

func (benchMachineCmd) Run(s *session) error {
	return s.untilSignal(func(ctx context.Context) error {
		begin := time.Now()
		p, err := bench.Machine(ctx, func(done, all int) {
			s.status.update(func(int) string {
				return fmt.Sprintf("exercise %d of %d, %s", done+1, all, seconds(time.Since(begin)))
			})
		})
		if err != nil {
			return err
		}
		path, err := p.Save()
		if err != nil {
			return err
		}
		figures := p.Figures()
		s.printProfile(p, figures)
		s.printf("\nmeasured in %s, kept in %s\n", seconds(time.Since(begin)), path)
		return s.emit(struct {
			*machine.Profile
			Path    string           `json:"path"`
			Figures []machine.Figure `json:"figures"`
		}{p, path, figures})
	})
}

// printProfile prints the speeds of a machine, a column for each number of threads.
func (s *session) printProfile(p *machine.Profile, figures []machine.Figure) {
	s.printf("%s, %s\n", p.CPU, p.Kernels)
	group := ""
	for _, f := range figures {
		if f.Group != group {
			group = f.Group
			s.printf("\n%-36s", group+", "+f.Unit)
			for _, x := range p.Sections {
				s.printf("%12s", units.Count(x.Threads, "thread"))
			}
			s.printf("\n")
		}
		s.printf("  %-34s", f.Name)
		for _, v := range f.Values {
			s.printf("%12.0f", v)
		}
		s.printf("\n")
	}
	s.printf("\n%-36s", "shortest call, µs")
	for i := range p.Sections {
		s.printf("%12.1f", 1e6*p.Sections[i].Launch())
	}
	s.printf("\n")
}
