package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"anneal/lab/study"
)

type studyCmd struct {
	Grokking     studyGrokkingCmd     `cmd:"" help:"Grokking: models that generalise long after they have memorised."`
	Emergence    studyEmergenceCmd    `cmd:"" help:"Abilities that appear at a size: in the model, or only in the measure?"`
	Forgetting   studyForgettingCmd   `cmd:"" help:"How much of a first task a second one erases, and how much replay keeps."`
	Collapse     studyCollapseCmd     `cmd:"" help:"What is left when each generation learns from the text of the one before."`
	Memorisation studyMemorisationCmd `cmd:"" help:"How many copies of a secret a model needs to remember it."`
	Selfimprove  studySelfImproveCmd  `cmd:"" help:"A model that learns from its own right answers."`
}

// studyFlags are the flags of all studies.
type studyFlags struct {
	Out string `required:"" placeholder:"DIR" help:"Directory of the study. An interrupted study is resumed."`
}

// seedFlags are the flags of studies whose results depend on a seed.
type seedFlags struct {
	Seed  count `default:"1" placeholder:"N" help:"Seed of the weights, of the data order, and of texts that a study makes anew for each seed."`
	Seeds count `default:"1" placeholder:"N" help:"Repeat the study with N seeds, from --seed on, to show how the figures vary."`
	studyFlags
}

// studySeeds makes a study with each seed of its flags and shows the findings. of returns the options for a seed, and
// make runs the study and prints its table.
func studySeeds[O any](s *session, f seedFlags, name string, of func(seed int) O,
	make func(ctx context.Context, d *study.Dir, o O) (*study.Report, error)) error {
	first := int(f.Seed)
	switch f.Seeds {
	case 0:
		return &usageError{"--seeds 0: no study", "try --seeds 3"}
	case 1:
		return f.study(s, name, of(first), func(ctx context.Context, d *study.Dir) (*study.Report, error) {
			return make(ctx, d, of(first))
		})
	}
	var seeds []int
	for i := range int(f.Seeds) {
		seeds = append(seeds, first+i)
	}
	start := time.Now()
	several := map[string]any{"of each seed": of(first)}
	return f.open(s, name, several, func(ctx context.Context, d *study.Dir) error {
		spreads, err := study.Repeat(ctx, d, name, seeds, of,
			func(ctx context.Context, d *study.Dir, o O) (*study.Report, error) {
				s.printf("%s\n", filepath.Base(d.Path))
				r, err := make(ctx, d, o)
				s.printf("\n")
				return r, err
			})
		if err != nil {
			return err
		}
		s.printSpreads(spreads)
		elapsed := time.Since(start)
		s.closing(fmt.Sprintf("%d studies, each with its report.json", len(seeds)), f.Out, elapsed, "")
		return s.emit(map[string]any{
			"study": name, "seeds": seeds, "figures": spreads, "out": f.Out, "seconds": elapsed.Seconds(),
		})
	})
}

// printSpreads shows how figures vary from seed to seed.
func (s *session) printSpreads(list []study.Spread) {
	wide := 0
	for _, x := range list {
		wide = max(wide, len(x.Name))
	}
	s.printf("%-*s  %8s  %8s  %8s\n", wide, fmt.Sprintf("over %d seeds", len(list[0].Values)), "mean", "least", "most")
	for _, x := range list {
		least, most := x.Range()
		s.printf("%-*s  %8.4g  %8.4g  %8.4g  %s\n", wide, x.Name, x.Mean(), least, most, x.Unit)
	}
	s.printf("\n")
}

// study makes a study in the directory of its flags and shows the findings. The options decide its results.
func (f studyFlags) study(s *session, name string, options any,
	make func(context.Context, *study.Dir) (*study.Report, error)) error {
	start := time.Now()
	return f.open(s, name, options, func(ctx context.Context, d *study.Dir) error {
		r, err := make(ctx, d)
		if err != nil {
			return err
		}
		for _, c := range r.Charts {
			if err := s.draw(c, ""); err != nil {
				return err
			}
			s.printf("\n")
		}
		s.prosef("", "%s\n\n", r.Seen)
		elapsed := time.Since(start)
		s.closing(fmt.Sprintf("%s, with %d pictures", "report.json", len(r.Charts)), f.Out, elapsed, "")
		return s.emit(map[string]any{
			"study": r.Study, "seen": r.Seen, "figures": r.Figures, "out": f.Out, "seconds": elapsed.Seconds(),
		})
	})
}

// open opens the directory of the flags while do runs.
func (f studyFlags) open(s *session, name string, options any, do func(context.Context, *study.Dir) error) error {
	return s.whileTraining(func(ctx context.Context) error {
		d, err := study.Open(f.Out, name, options)
		if err != nil {
			return err
		}
		defer d.Close()
		d.Note = func(text string) { s.notef("%s", text) }
		if err = do(ctx, d); err != nil && ctx.Err() != nil {
			return &stopped{"stopped; what was trained is saved\n  give the same command again to continue"}
		}
		return err
	})
}
