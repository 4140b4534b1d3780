package main

import (
	"context"
	"fmt"

	"anneal/lab/study"
)

type studyCollapseCmd struct {
	Trials count `default:"4000" placeholder:"N" help:"Histories of the Gaussian; a tenth as many of the text."`
	Steps  count `default:"300" placeholder:"N" help:"Steps of each language model; 0 leaves them out."`
	seedFlags
}

func (studyCollapseCmd) Help() string {
	return example("anneal lab study collapse --out runs/collapse",
		"anneal lab study collapse --seeds 3 --out runs/collapse3") +
		"\n\nEvery generation learns from samples of the one before (Shumailov et al. 2024, Nature 631): a " +
		"Gaussian, and the word frequencies of a text. The samples replace those of earlier generations, " +
		"or accumulate beside them (Gerstgrasser et al. 2024, arXiv 2404.01413), or a tenth of each generation is " +
		"real. Beside each figure stands what theory says. Then language models do the same: each learns from 300 " +
		"documents that the one before wrote."
}

func (c studyCollapseCmd) Run(s *session) error {
	if c.Trials < 20 {
		return &usageError{fmt.Sprintf("%d trials say nothing", c.Trials), "try --trials 4000"}
	}
	of := func(seed int) study.CollapseOptions {
		return study.CollapseOptions{Seed: seed, Trials: int(c.Trials), Steps: int(c.Steps)}
	}
	return studySeeds(s, c.seedFlags, "collapse", of, func(ctx context.Context, d *study.Dir,
		o study.CollapseOptions) (*study.Report, error) {
		r, x, err := study.Collapse(ctx, d, o)
		if err != nil {
			return nil, err
		}
		s.printf("generation  %18s  %8s  %18s\n", "variance, replaced", "theory", "accumulated")
		for t, g := range x.Gaussian[study.Replace] {
			if g.Generation == 1 || g.Generation%5 == 0 {
				s.printf("%10d  %18s  %8.4f  %18.4f\n",
					g.Generation, fmt.Sprintf("%.4f ± %.4f", g.Mean, g.Error), g.Theory,
					x.Gaussian[study.Accumulate][t].Mean)
			}
		}
		s.printf("\ngeneration  %14s  %15s  %11s  %9s\n", "words, replaced",
			"a tenth is real", "accumulated", "diversity")
		for t := range x.Frequencies[0].Support {
			s.printf("%10d  %15.0f  %15.0f  %11.0f  %9.4f\n", t+1, x.Frequencies[0].Support[t].Mean,
				x.Frequencies[1].Support[t].Mean, x.Frequencies[2].Support[t].Mean, x.Frequencies[0].Diversity[t].Mean)
		}
		s.printf("\n")
		printLineages(s, x.Lineages)
		return r, nil
	})
}

// printLineages shows the lineages of language models, if there are any.
func printLineages(s *session, list []study.Lineage) {
	if len(list) == 0 {
		return
	}
	s.printf("%-10s  %-43s  %s\n%-10s", "", "bits per byte of real text", "rarer half of the words that it writes",
		"generation")
	for range 2 {
		for _, l := range list {
			s.printf("  %13s", l.Mode)
		}
	}
	s.printf("\n")
	for n := range list[0].Models {
		s.printf("%10d", n)
		for _, l := range list {
			s.printf("  %13.4f", l.Models[n].HeldOut)
		}
		for _, l := range list {
			s.printf("  %11.0f %%", 100*l.Models[n].Tail)
		}
		s.printf("\n")
	}
	s.printf("\n")
}
