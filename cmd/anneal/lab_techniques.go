package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"anneal/lab"
	"anneal/lab/techniques"
)

type labTechniquesCmd struct {
	Only  []string `placeholder:"GROUP" help:"Groups of techniques to compare: optimizers, muon, schedules, decays, weight_decay, precision, memory, stability, init, attention, positions, families, anneal. Default: all."`
	Seeds int      `default:"5" placeholder:"N" help:"Runs of each technique, with seeds 1 to N. Default: 5."`
	Out   string   `default:"runs/techniques" placeholder:"DIR" help:"Directory of figures and runs, runs/techniques by default. Existing runs are resumed."`
}

func (labTechniquesCmd) Help() string {
	return example("anneal lab techniques --only optimizers", "anneal lab techniques --seeds 3 --out runs/three") +
		"\n\nEvery technique trains the same small model on the source of the Go standard library, with a rate that " +
		"is searched\nfor each alike, and with several seeds. A run takes 10 to 40 s of one core, a group 10 minutes " +
		"to 2.5 hours of two cores.\nDIR/techniques.json keeps the figures; verdicts are computed anew each time. " +
		"docs/measured.md shows the figures of\none machine. `anneal lab ablate` compares techniques on your own " +
		"model and text."
}

func (c labTechniquesCmd) Run(s *session) error {
	start := time.Now()
	groups, err := c.chosen()
	if err != nil {
		return err
	}
	return s.whileTraining(func(ctx context.Context) error {
		results, err := techniques.Run(ctx, techniques.Options{
			Dir: c.Out, Groups: groups, Seeds: c.Seeds, OnStage: func(text string) { s.notef("%s", text) },
			OnText: s.readProgress(),
		})
		if ctx.Err() != nil || results == nil && err == nil {
			return &stopped{"stopped; all runs are saved\n  give the same command again to continue"}
		}
		if err != nil {
			return asUsage(err)
		}
		shown := []map[string]any{}
		for i, g := range groups {
			m := results.Find(g.Name)
			list := m.Judge()
			s.printGroup(g, list, i > 0)
			shown = append(shown, map[string]any{
				"group": g.Name, "machine": m.Machine, "date": m.Date, "seconds": m.Seconds,
				"rows": judgedJSON(m.Rows, list),
			})
		}
		elapsed := time.Since(start)
		s.printf("\n")
		s.closing(fmt.Sprintf("%d groups", len(groups)), c.Out, elapsed, "")
		return s.emit(map[string]any{"groups": shown, "out": c.Out, "seconds": elapsed.Seconds()})
	})
}

// chosen returns the groups that the flags select.
func (c labTechniquesCmd) chosen() ([]techniques.Group, error) {
	if c.Seeds < 2 || c.Seeds > 1000 {
		return nil, &usageError{fmt.Sprintf("--seeds %d: want 2 to 1,000 runs of each technique", c.Seeds),
			"try --seeds 5"}
	}
	all := techniques.Groups()
	if len(c.Only) == 0 {
		return all, nil
	}
	var names []string
	for _, g := range all {
		names = append(names, g.Name)
	}
	for _, name := range c.Only {
		if !slices.Contains(names, name) {
			return nil, &usageError{fmt.Sprintf("--only %s is not a group of techniques", name),
				"try one of " + strings.Join(names, ", ")}
		}
	}
	return slices.DeleteFunc(all, func(g techniques.Group) bool { return !slices.Contains(c.Only, g.Name) }), nil
}

// printGroup prints the table of a group.
func (s *session) printGroup(g techniques.Group, list []lab.Ablated, more bool) {
	if more {
		s.printf("\n")
	}
	wide := len(g.Title)
	for _, v := range list {
		wide = max(wide, len(v.Name))
	}
	s.printf("%-*s  %13s  %15s  against the first\n", wide, g.Title, "bits/byte", "rate")
	for _, v := range list {
		edge := ""
		if v.AtEdge {
			edge = " (edge)"
		}
		s.printf("%-*s  %13s  %15s  %s\n", wide, v.Name, bitsOf(v), fmt.Sprintf("%.3g%s", v.Value, edge), v.Verdict())
	}
}

// judgedJSON is a group's figures with their verdicts.
func judgedJSON(rows []techniques.Figure, list []lab.Ablated) (judged []map[string]any) {
	for i, v := range list {
		judged = append(judged, map[string]any{
			"name": v.Name, "set": rows[i].Set, "rate": v.Value, "at_edge": v.AtEdge,
			"runs": rows[i].Bits, "bits_per_byte": number(v.Mean()), "change": number(v.Change),
			"interval": number(v.Interval), "p": number(v.P), "verdict": v.Verdict(),
		})
	}
	return judged
}
