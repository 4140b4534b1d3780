package main

import (
	"context"
	"fmt"
	"time"

	"anneal/lab/study"
)

type studyCmd struct {
	Grokking     studyGrokkingCmd     `cmd:"" help:"Models that understand long after they have memorised."`
	Emergence    studyEmergenceCmd    `cmd:"" help:"Abilities that appear at a size: in the model, or only in the measure?"`
	Forgetting   studyForgettingCmd   `cmd:"" help:"What a second task leaves of the first, and what replay keeps."`
	Collapse     studyCollapseCmd     `cmd:"" help:"What is left when every generation learns from the one before."`
	Memorisation studyMemorisationCmd `cmd:"" help:"How many copies of a secret a model needs to remember it."`
	Selfimprove  studySelfImproveCmd  `cmd:"" help:"A model that learns from those of its own answers that are right."`
}

// studyFlags are those of all studies.
type studyFlags struct {
	Out string `required:"" placeholder:"DIR" help:"Directory of the study. A study that was stopped goes on."`
}

// study makes a study in the directory of its flags, and shows what it found. options decide its results.
func (f studyFlags) study(s *session, name string, options any,
	make func(context.Context, *study.Dir) (*study.Report, error)) error {
	start := time.Now()
	return s.whileTraining(func(ctx context.Context) error {
		d, err := study.Open(f.Out, name, options)
		if err != nil {
			return err
		}
		defer d.Close()
		d.Note = func(text string) { s.notef("%s", text) }
		r, err := make(ctx, d)
		if err != nil && ctx.Err() != nil {
			return &stopped{"stopped; what was trained is saved\n  give the same command again to go on"}
		}
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
