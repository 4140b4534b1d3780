package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"text/tabwriter"
	"time"

	"anneal/internal/units"
	"anneal/run"
)

type lsCmd struct {
	Dir string `arg:"" optional:"" default:"." help:"Directory to search. Default: the working directory."`
}

func (lsCmd) Help() string {
	return example("anneal ls", "anneal ls runs", "anneal ls runs --json") +
		"\n\nRuns are listed by name, each with its state: running, finished, stopped, diverged, damaged," +
		" no checkpoint, imported, or derived (weights averaged or compressed from a run). The loss is that of" +
		" the last evaluation, with its step, or that of the last batch if there was none. The age is the time" +
		" since a file of the run was written." +
		"\n\nLinks are not followed, and hidden directories are skipped."
}

func (c lsCmd) Run(s *session) error {
	dirs, err := run.FindRuns(c.Dir, func(err error) { s.warn(err.Error()) })
	if errors.Is(err, fs.ErrNotExist) {
		return &usageError{c.Dir + " does not exist", "try `anneal ls`, which searches the working directory"}
	}
	if err != nil {
		return asData(err)
	}
	runs := make([]run.Summary, len(dirs))
	rows := make([]any, len(dirs))
	for i, dir := range dirs {
		runs[i] = run.Summarize(dir)
		rows[i] = runJSON(&runs[i])
	}
	if len(runs) == 0 {
		s.printf("there is no run in or below %s\n"+
			"  start one with `anneal train CONFIG --out RUN`, or try `anneal demo`\n", c.Dir)
	} else if err := writeRuns(s.out(), runs, time.Now()); err != nil {
		return err
	}
	for i := range runs {
		if err := runs[i].Err; err != nil {
			s.warn(fmt.Sprintf("%s: %v", runs[i].Dir, err))
		}
	}
	return s.emit(map[string]any{"runs": rows})
}

// writeRuns writes a table of runs.
func writeRuns(w io.Writer, runs []run.Summary, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(table, "RUN\tSTATE\tSTEPS\tLOSS (NATS/TOKEN)\tPARAMETERS\tDISK\tAGE")
	for i := range runs {
		r := &runs[i]
		_, e := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Dir, r.State, stepsOf(r), lossOf(r),
			cmp.Or(millions(r.Parameters), "-"), units.FormatSize(r.Bytes), age(now.Sub(r.Changed)))
		err = errors.Join(err, e)
	}
	return errors.Join(err, table.Flush())
}

// stepsOf writes the finished and the planned steps; a run of weights alone has no plan.
func stepsOf(r *run.Summary) string {
	switch {
	case r.State == run.Derived:
		return units.Commas(r.Step)
	case r.Steps == 0:
		return "-"
	}
	return units.Commas(r.Step) + "/" + units.Commas(r.Steps)
}

// lossOf writes the validation loss with its step, or else the training loss.
func lossOf(r *run.Summary) string {
	switch {
	case !math.IsNaN(r.ValLoss):
		return fmt.Sprintf("%.4f at %s", r.ValLoss, units.Commas(r.ValStep))
	case !math.IsNaN(r.TrainLoss):
		return fmt.Sprintf("%.4f in training", r.TrainLoss)
	}
	return "-"
}

// millions writes a number of parameters in the units of the field; "" for none.
func millions(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 1e6:
		return fmt.Sprintf("%.0fK", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fB", float64(n)/1e9)
}

// age writes a time in its largest unit.
func age(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= u.unit {
			return fmt.Sprintf("%d%s", d/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%ds", max(0, d/time.Second))
}

func runJSON(r *run.Summary) map[string]any {
	row := map[string]any{
		"run": r.Dir, "state": r.State, "step": r.Step, "steps": r.Steps, "train_loss": number(r.TrainLoss),
		"val_loss": number(r.ValLoss), "val_bits_per_byte": number(r.ValBitsPerByte), "val_step": r.ValStep,
		"parameters": r.Parameters, "bytes": r.Bytes, "changed": r.Changed.UTC().Format(time.RFC3339),
		"age_seconds": max(0, time.Since(r.Changed).Seconds()),
	}
	if r.Err != nil {
		row["error"] = r.Err.Error()
	}
	return row
}
