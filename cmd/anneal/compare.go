package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"anneal/lab"
)

type compareCmd struct {
	configArgs
	With []string `required:"" sep:"none" placeholder:"\"KEY=VALUE …\"" help:"Values of one more run; may be given many times."`
	Out  string   `required:"" placeholder:"DIR" help:"Directory that holds the runs. Those that are there already are gone on with."`
	svgFlag
	runThreadsFlag
}

func (compareCmd) Help() string {
	return example("anneal compare examples/tiny.yaml train.steps=200 --with optimizer.name=lion --with \"optimizer.name=sgd optimizer.lr=0.1\" --out runs/which") +
		"\n\nEvery run has the same data in the same order and starts from the same weights, so what differs is what --with says."
}

func (c compareCmd) Run(s *session) error {
	o := lab.CompareOptions{Config: c.Config, Overrides: c.Overrides, Out: c.Out, Threads: int(c.Threads), OnProgress: s.trainProgress(0)}
	for _, w := range c.With {
		if strings.TrimSpace(w) == "" {
			return &usageError{"a --with without values is the configured run, which is trained anyway", `try --with "optimizer.name=lion"`}
		}
		o.Variants = append(o.Variants, overridesIn(w))
	}
	o.OnRun = func(name string, i, n int) { s.notef("run %d of %d: %s", i+1, n, name) }
	wide := len("as configured")
	for _, w := range c.With {
		wide = max(wide, len(w))
	}
	return s.untilSignal(func(ctx context.Context) error {
		all, err := lab.Compare(ctx, o)
		if err != nil {
			return err
		}
		if len(all) <= len(c.With) {
			return &stopped{"stopped; what was trained is saved\n  go on with the same command"}
		}
		s.printf("%-*s  %13s  %8s  %10s  %12s  %s\n", wide, "run", "val bits/byte", "change", "train loss", "tok/s", "memory")
		for _, r := range all {
			s.printf("%-*s  %s\n", wide, r.Name, comparedLine(r))
		}
		picture, err := lab.CompareChart(all)
		if err == nil {
			err = s.draw(picture, c.SVG)
		}
		if err != nil {
			return err
		}
		return s.emit(map[string]any{"runs": comparedJSON(all)})
	})
}

// overridesIn takes apart "key=value key=value": a word without = belongs to the value before it, as in "64 over 10%".
func overridesIn(text string) (list []string) {
	for _, word := range strings.Fields(text) {
		if n := len(list); n > 0 && !strings.Contains(word, "=") {
			list[n-1] += " " + word
			continue
		}
		list = append(list, word)
	}
	return list
}

// comparedLine is one row of the table, after the name.
func comparedLine(r lab.Compared) string {
	if r.Diverged {
		return fmt.Sprintf("%13s", "diverged")
	}
	change, rate := "", ""
	if !math.IsNaN(r.Change) {
		change = fmt.Sprintf("%+.2f %%", 100*r.Change)
	}
	if !math.IsNaN(r.TokensPerSecond) {
		rate = thousands(int64(r.TokensPerSecond))
	}
	return fmt.Sprintf("%13.4f  %8s  %10.4f  %12s  %s", r.ValBitsPerByte, change, r.TrainLoss, rate, mebibytes(arenaBytes(r)))
}

// arenaBytes is the memory laid out for the run's tensors.
func arenaBytes(r lab.Compared) (sum int64) {
	for _, a := range r.Arenas {
		sum += a.Bytes
	}
	return sum
}

func comparedJSON(all []lab.Compared) (runs []map[string]any) {
	for _, r := range all {
		run := map[string]any{"name": r.Name, "run": r.Run, "diverged": r.Diverged, "change": number(r.Change)}
		if !r.Diverged {
			run["val_bits_per_byte"], run["train_loss"] = number(r.ValBitsPerByte), number(r.TrainLoss)
			run["tokens_per_second"], run["arena_bytes"], run["weights_hash"] = number(r.TokensPerSecond), arenaBytes(r), r.WeightsHash
		}
		runs = append(runs, run)
	}
	return runs
}
