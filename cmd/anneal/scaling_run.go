package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"anneal/internal/units"
	"anneal/lab"
)

type scalingRunCmd struct {
	Overrides []string  `arg:"" optional:"" name:"section.key=value" help:"Values for every run: data.path=DIR, and others that differ from the defaults."`
	Budget    inMinutes `required:"" placeholder:"TIME" help:"Time of the whole study, such as 30m or 2h."`
	Out       string    `placeholder:"STUDY" help:"Directory of the study. An interrupted study in STUDY is resumed."`
	DryRun    bool      `help:"Print the sizes and lengths that the study would train, and stop."`
	runThreadsFlag
}

func (scalingRunCmd) Help() string {
	return example("anneal scaling run --budget 2h data.path=data/go --out runs/study",
		"anneal scaling run --budget 20m data.path=data/go optimizer.name=adamw --out runs/adamw",
		"anneal scaling run --budget 2h data.path=data/go --dry-run",
		"anneal scaling fit runs/study") +
		"\n\nUp to five sizes, each about twice the last, are trained for 1, 2, 4 and 8 units of tokens. " +
		"The longest run of a size is a trunk\nwith a WSD schedule; the others branch off where their decay begins, " +
		"so that a size costs little more than its longest run.\nSizes and lengths follow from the budget and the " +
		"measured speed. Losses of finished runs are in STUDY/points.csv.\nIf it is stopped, give the same command " +
		"again: it continues.\n\n" +
		"Family, optimizer and learning rate are those of train --budget. With optimizer.lr, that is the rate of the " +
		"smallest size,\nand the others follow from it by the same rule."
}

func (c scalingRunCmd) Run(s *session) error {
	start := time.Now()
	s.noteKernels()
	o := lab.LadderOptions{
		Overrides: c.Overrides, Out: c.Out, Threads: int(c.Threads), Budget: c.Budget.duration(),
		OnPhase: func(what string) { s.notef("%s", what) }, OnProgress: s.trainProgress(0),
	}
	switch {
	case c.DryRun:
		return s.whileTraining(func(ctx context.Context) error { return dryRunLadder(ctx, s, o) })
	case c.Out == "":
		return &usageError{"scaling run needs a directory for the study", "try --out runs/study, or --dry-run"}
	}
	return s.whileTraining(func(ctx context.Context) error {
		l, err := lab.TrainLadder(ctx, o)
		if err != nil {
			return searchError(err)
		}
		elapsed, points := time.Since(start), filepath.Join(c.Out, lab.PointsFile)
		s.closing("losses of "+units.Count(len(l.Losses), "model"), points, elapsed,
			command("anneal", "scaling", "fit", c.Out))
		return s.emit(struct {
			*lab.Ladder
			Out     string  `json:"out"`
			Seconds float64 `json:"seconds"`
		}{l, points, elapsed.Seconds()})
	})
}

// dryRunLadder prints the sizes of a study and the resources of each.
func dryRunLadder(ctx context.Context, s *session, o lab.LadderOptions) error {
	l, err := lab.PlanLadder(ctx, o)
	if err != nil {
		return searchError(err)
	}
	table := tabwriter.NewWriter(s.out(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "layers × width\tparameters\trate\ttokens, shortest to longest\ttokens/s\ttime\t")
	total := 0.0
	for _, r := range l.Rungs {
		var tokens []string
		for _, n := range r.Tokens() {
			tokens = append(tokens, fmt.Sprintf("%.3gM", n/1e6))
		}
		fmt.Fprintf(table, "%d × %d\t%s\t%.2g\t%s\t%.0f\t%s\t\n", r.Layers, r.Dim, rungSize(r.Params), r.LR,
			strings.Join(tokens, ", "), r.TokensPerSecond, inWholeSeconds(r.Seconds()))
		total += r.Seconds()
	}
	if err := table.Flush(); err != nil {
		return err
	}
	last := l.Rungs[len(l.Rungs)-1]
	longest := last.Tokens()[len(last.Tokens())-1]
	s.printf("%d runs in %s and their evaluations; the largest trains %s parameters for %.3g FLOPs\n",
		len(l.Rungs)*len(last.Tokens()), inWholeSeconds(total), rungSize(last.Params), last.FLOPsPerToken*longest)
	return s.emit(struct {
		*lab.Ladder
		Seconds float64 `json:"seconds"`
	}{l, total})
}

// rungSize writes the parameters of a small model, such as 0.08M or 1.05M.
func rungSize(params float64) string { return fmt.Sprintf("%.2fM", params/1e6) }

func inWholeSeconds(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}
