package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/internal/units"
	"anneal/tasks"
)

// checkTasks returns an error for flags that do not go together.
func (c evalCmd) checkTasks() error {
	switch {
	case c.Tasks == "" && len(c.Data) == 0:
		return &usageError{"nothing to evaluate on", "try --data DIR for held-out text, or --tasks FILE for tasks"}
	case c.Tasks != "" && len(c.Data) > 0:
		return &usageError{"--data and --tasks are two evaluations", "try them one after the other"}
	case c.Tasks == "" && (c.Limit > 0 || c.Samples != "" || c.By != ""):
		return &usageError{"--limit, --samples and --by are for --tasks", "try --tokens to score a part of the text"}
	case c.Tasks != "" && (c.Tokens > 0 || c.Split != "val"):
		return &usageError{"--tokens and --split are for --data", "try --limit to take the first items of each task"}
	}
	return nil
}

// onTasks asks the model tasks, and prints their figures.
func (c evalCmd) onTasks(s *session) error {
	set, err := tasks.Load(c.Tasks)
	if err != nil {
		return err
	}
	r, err := c.open(s, c.Dir, c.Device, c.Threads, c.reachFlags)
	if err != nil {
		return err
	}
	defer r.Close()
	exam, err := r.Prepare(set, int(c.Limit))
	if damaged := (*tasks.DataError)(nil); errors.As(err, &damaged) {
		err = &dataset.Error{Err: err}
	}
	if err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		o := tasks.Options{By: c.By, Progress: func(done, total int64, unit string) {
			s.status.update(func(int) string {
				return fmt.Sprintf("%s of %s %s", units.Commas(done), units.Commas(total), unit)
			})
		}}
		var result *tasks.Result
		err := c.writeSamples(func(sample func(tasks.Sample) error) (err error) {
			o.Sample = sample
			result, err = r.Ask(ctx, exam, o)
			return err
		})
		if err != nil {
			return err
		}
		elapsed := time.Since(start)
		printTasks(s, result)
		for _, t := range result.Tasks {
			for _, text := range t.Warnings() {
				s.warn(text)
			}
			if t.Items < t.Of {
				s.notef("%s has %s items; --limit took the first %s", t.Task, units.Commas(t.Of),
					units.Commas(t.Items))
			}
		}
		what := fmt.Sprintf("%s at step %d in %s", units.Count(len(result.Tasks), "task"), r.Step, r.Numbers())
		if result.Tokens > 0 {
			what += ", " + units.Commas(result.Tokens) + " tokens read"
		}
		s.closing(what, c.Samples.String(), elapsed, "")
		return s.emit(map[string]any{
			"tasks": result.Tasks, "groups": result.Groups, "tokens": result.Tokens, "scored_tokens": result.Scored,
			"prompts": result.Prompts, "step": r.Step, "context": r.Context(), "precision": r.Config.Precision,
			"dtype": c.Dtype, "samples": string(c.Samples), "damaged": faults(r.Skipped),
			"seconds": elapsed.Seconds(),
		})
	})
}

// writeSamples calls run with a function that writes a sample as a line to --samples; without --samples the function
// is nil.
func (c evalCmd) writeSamples(run func(sample func(tasks.Sample) error) error) error {
	if c.Samples == "" {
		return run(nil)
	}
	return fileio.Write(string(c.Samples), func(w io.Writer) error {
		lines := bufio.NewWriter(w)
		e := json.NewEncoder(lines)
		e.SetEscapeHTML(false)
		if err := run(func(x tasks.Sample) error { return e.Encode(x) }); err != nil {
			return err
		}
		return lines.Flush()
	})
}

// printTasks prints a line for each figure.
func printTasks(s *session, r *tasks.Result) {
	width, wide := len("task"), 18 // of names, and of metrics
	for _, t := range r.Tasks {
		width = max(width, len(t.Alias))
		for _, m := range t.Metrics {
			wide = max(wide, len(metricName(m)))
		}
		for _, p := range t.Parts {
			width = max(width, 2+len(p.Value))
		}
	}
	for _, g := range r.Groups {
		width = max(width, len(g.Alias))
	}
	width = min(width, 30)
	row := func(name, shots, items string, list []tasks.MetricResult) {
		for _, m := range list {
			arrow := "↓"
			if m.HigherIsBetter {
				arrow = "↑"
			}
			s.printf("%-*.*s  %5s  %6s  %-*s %s %10s  %s\n", width, width, name, shots, items, wide, metricName(m),
				arrow, figure(float64(m.Value)), plusMinus(float64(m.Stderr)))
			name, shots, items = "", "", ""
		}
	}
	s.printf("%-*s  %5s  %6s  %-*s   %10s\n", width, "task", "shots", "items", wide, "metric", "value")
	for _, t := range r.Tasks {
		row(t.Alias, fmt.Sprint(t.Shots), units.Commas(t.Items), t.Metrics)
		for _, p := range t.Parts {
			row("  "+p.Value, "", units.Commas(p.Items), p.Metrics)
		}
	}
	for _, g := range r.Groups {
		row(g.Alias, "", "", g.Metrics)
	}
}

// metricName is the name of a metric with the filter of its answers, if they have one.
func metricName(m tasks.MetricResult) string {
	if m.Filter == "none" {
		return m.Name
	}
	return m.Name + "," + m.Filter
}

func figure(v float64) string {
	if a := math.Abs(v); a != 0 && (a < 1e-3 || a >= 1e5) {
		return fmt.Sprintf("%.3e", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func plusMinus(stderr float64) string {
	if math.IsNaN(stderr) {
		return ""
	}
	return "± " + figure(stderr)
}
