package main

import (
	"context"
	"fmt"

	"anneal/lab/study"
)

type studySelfImproveCmd struct {
	Examples count   `default:"300" placeholder:"N" help:"Sums with worked steps, to begin with."`
	Pool     count   `default:"2000" placeholder:"N" help:"Questions of which only the results are known."`
	Rounds   count   `default:"3" placeholder:"N" help:"Rounds after the first model."`
	Steps    count   `default:"600" placeholder:"N" help:"Steps of each model."`
	Decay    float64 `default:"1" placeholder:"X" help:"Weight decay of each model."`
	seedFlags
}

func (studySelfImproveCmd) Help() string {
	return example("anneal lab study selfimprove --out runs/selfimprove",
		"anneal lab study selfimprove --seeds 3 --out runs/selfimprove3",
		"anneal lab study selfimprove --examples 150 --rounds 6 --out runs/fewer") +
		"\n\nA model that has seen 300 additions with their steps answers 2,000 more questions. The next model " +
		"learns from the 300 and from those of its answers that end in the right result, and so on (STaR: Zelikman " +
		"et al. 2022, arXiv 2203.14465). Beside that: with the result as a hint where it failed; without the filter; " +
		"and as many steps on the 300 alone. `anneal improve` is the same loop for your own questions."
}

func (c studySelfImproveCmd) Run(s *session) error {
	of := func(seed int) study.SelfImproveOptions {
		return study.SelfImproveOptions{
			Seed: seed, Examples: int(c.Examples), Pool: int(c.Pool), Rounds: int(c.Rounds), Steps: int(c.Steps),
			Decay: c.Decay,
		}
	}
	const most = 100_000
	if o := of(1); o.Examples < 1 || o.Pool < 1 || o.Rounds < 1 || o.Steps < 10 || o.Examples+o.Pool > most {
		return &usageError{
			fmt.Sprintf("%d examples, %d questions and %d rounds of %d steps are no study", o.Examples, o.Pool,
				o.Rounds, o.Steps),
			"try --examples 300 --pool 2000 --rounds 3 --steps 600; at most 100,000 sums in all",
		}
	}
	return studySeeds(s, c.seedFlags, "selfimprove", of, func(ctx context.Context, d *study.Dir,
		o study.SelfImproveOptions) (*study.Report, error) {
		r, list, err := study.SelfImprove(ctx, d, o)
		if err != nil {
			return nil, err
		}
		s.printf("%-32s  held-out sums that are right, after each round\n", "learns from")
		for _, m := range list {
			s.printf("%-32s", m.Name)
			for _, a := range m.Accuracy {
				s.printf("  %5.1f %%", 100*a)
			}
			s.printf("\n")
		}
		return r, nil
	})
}
