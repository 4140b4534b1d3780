package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"anneal/lab"
)

type compareCmd struct {
	configArgs
	With []string `required:"" sep:"none" placeholder:"\"KEY=VALUE …\"" help:"Values of one more run. May be repeated."`
	Out  string   `required:"" placeholder:"DIR" help:"Directory of the runs. Runs that are already there are continued."`

	SameCompute bool   `help:"Give each run the same number of operations as the first, unless its --with sets train.steps."`
	Context     string `placeholder:"N" help:"Also evaluate with this context, in tokens, such as 4096, or as a multiple of the training context, such as 4x."`
	svgFlag
	runThreadsFlag
}

func (compareCmd) Help() string {
	return example("anneal compare examples/tiny.yaml train.steps=200 --with optimizer.name=lion --with "+
		"\"optimizer.name=sgd optimizer.lr=0.1\" --out runs/which",
		"anneal compare examples/ablation.yaml --with model.attention=window:64 --with model.attention=longnet:64 "+
			"--same-compute --context 4x --out runs/long") +
		"\n\nAll runs have the same data, order and initial weights. They differ only in what --with says."
}

func (c compareCmd) Run(s *session) error {
	start := time.Now()
	c.remark(s)
	o := lab.CompareOptions{
		Config: c.Config, Overrides: c.Overrides, Out: c.Out, Threads: int(c.Threads), SameCompute: c.SameCompute,
		Context: c.Context, OnProgress: s.trainProgress(0),
	}
	for _, w := range c.With {
		if strings.TrimSpace(w) == "" {
			return &usageError{"--with is empty: the configured run is always trained, without it",
				`try --with "optimizer.name=lion"`}
		}
		o.Variants = append(o.Variants, overridesIn(w))
	}
	o.OnRun = func(name string, i, n int) { s.notef("run %d of %d: %s", i+1, n, name) }
	wide := len("as configured")
	for _, w := range c.With {
		wide = max(wide, len(w))
	}
	return s.whileTraining(func(ctx context.Context) error {
		all, err := lab.Compare(ctx, o)
		if err != nil {
			return err
		}
		if len(all) <= len(c.With) {
			return &stopped{"stopped; all runs are saved\n  give the same command again to continue"}
		}
		far := ""
		if c.Context != "" {
			far = fmt.Sprintf("  %10s", "at "+c.Context)
		}
		s.printf("%-*s  %6s  %13s  %8s%s  %10s  %12s  %s\n",
			wide, "run", "steps", "val bits/byte", "change", far, "train loss", "tok/s", "memory")
		for _, r := range all {
			s.printf("%-*s  %s\n", wide, r.Name, comparedLine(r, c.Context != ""))
		}
		picture, err := lab.CompareChart(all, s.warn)
		if err == nil {
			err = s.draw(picture, c.SVG)
		}
		if err != nil {
			return err
		}
		elapsed := time.Since(start)
		s.closing(fmt.Sprintf("%d runs", len(all)), c.Out, elapsed, nextOfComparison(all))
		return s.emit(map[string]any{"runs": comparedJSON(all), "out": c.Out, "seconds": elapsed.Seconds()})
	})
}

// nextOfComparison lets the best of the runs write.
func nextOfComparison(all []lab.Compared) string {
	best := ""
	lowest := math.Inf(1)
	for _, r := range all {
		if !r.Diverged && r.ValBitsPerByte < lowest {
			best, lowest = command("anneal", "generate", r.Run), r.ValBitsPerByte
		}
	}
	return best
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

// comparedLine is one row of the table, after the name; far adds a column for a second row length.
func comparedLine(r lab.Compared, far bool) string {
	if r.Diverged {
		return fmt.Sprintf("%6s  %13s", "", "diverged")
	}
	change, rate, beyond := "", "", ""
	if far && math.IsNaN(r.Far) {
		beyond = fmt.Sprintf("  %10s", "cannot")
	} else if far {
		beyond = fmt.Sprintf("  %10.4f", r.Far)
	}
	if !math.IsNaN(r.Change) {
		change = fmt.Sprintf("%+.2f %%", 100*r.Change)
	}
	if !math.IsNaN(r.TokensPerSecond) {
		rate = thousands(int64(r.TokensPerSecond))
	}
	return fmt.Sprintf("%6d  %13.4f  %8s%s  %10.4f  %12s  %s",
		r.Step, r.ValBitsPerByte, change, beyond, r.TrainLoss, rate, memorySize(arenaBytes(r)))
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
			run["val_bits_per_byte"], run["train_loss"], run["steps"] = number(r.ValBitsPerByte),
				number(r.TrainLoss), r.Step
			run["far_bits_per_byte"] = number(r.Far)
			run["tokens_per_second"], run["arena_bytes"], run["weights_hash"] = number(r.TokensPerSecond),
				arenaBytes(r), r.WeightsHash
		}
		runs = append(runs, run)
	}
	return runs
}
