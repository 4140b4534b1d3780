package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"anneal/lab"
)

type scalingRunCmd struct {
	Overrides []string  `arg:"" optional:"" name:"section.key=value" help:"Values for every run: data.path=DIR, and others that differ from the defaults."`
	Budget    inMinutes `required:"" placeholder:"TIME" help:"Time of the whole study, such as 30m or 2h."`
	Out       string    `required:"" placeholder:"STUDY" help:"Directory of the study. An interrupted study in STUDY is resumed."`
	runThreadsFlag
}

func (scalingRunCmd) Help() string {
	return example("anneal scaling run --budget 2h data.path=data/go --out runs/study",
		"anneal scaling run --budget 20m data.path=data/go optimizer.name=muon optimizer.lr=2e-3 --out runs/muon",
		"anneal scaling fit runs/study") +
		"\n\nUp to five sizes, each about twice the last, are trained for 1, 2, 4 and 8 units of tokens. " +
		"The longest run of a size is a trunk\nwith a WSD schedule; the others branch off where their decay begins, " +
		"so that a size costs little more than its longest run.\nSizes and lengths follow from the budget and the " +
		"measured speed. Losses of finished runs are in STUDY/points.csv.\nIf it is stopped, give the same command " +
		"again: it continues."
}

func (c scalingRunCmd) Run(s *session) error {
	start := time.Now()
	s.noteKernels()
	return s.whileTraining(func(ctx context.Context) error {
		l, err := lab.TrainLadder(ctx, lab.LadderOptions{
			Overrides: c.Overrides, Out: c.Out, Threads: int(c.Threads),
			Budget:  time.Duration(float64(c.Budget) * float64(time.Minute)),
			OnPhase: func(what string) { s.notef("%s", what) }, OnProgress: s.trainProgress(0),
		})
		if err != nil {
			return searchError(err)
		}
		elapsed, points := time.Since(start), filepath.Join(c.Out, lab.PointsFile)
		s.closing(fmt.Sprintf("losses of %d models", len(l.Losses)), points, elapsed,
			command("anneal", "scaling", "fit", c.Out))
		return s.emit(struct {
			*lab.Ladder
			Out     string  `json:"out"`
			Seconds float64 `json:"seconds"`
		}{l, points, elapsed.Seconds()})
	})
}
