package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"anneal/config"
	"anneal/internal/units"
	"anneal/lab"
)

type labAblateCmd struct {
	configArgs
	With  []string `required:"" sep:"none" placeholder:"\"KEY=VALUE …\"" help:"Values of one more variant. May be repeated."`
	Seeds int      `default:"3" placeholder:"N" help:"Runs of each variant, with consecutive seeds from the config's seed on. One seed gives no interval."`
	Equal string   `default:"tokens" enum:"tokens,compute,time,memory" help:"What all variants get the same amount of: tokens, compute (operations), time (at speeds measured now), or memory (each takes the largest micro-batch that fits into the bytes of the first). A variant that sets train.steps or train.micro_batch keeps its value."`
	Tune  string   `placeholder:"KEY=N" help:"Tune the number KEY for every variant, with the first seed: try N values around its own, a factor of 2 apart, and up to N more while the best is at an edge. The best is used. Example: optimizer.lr=3."`
	Out   string   `required:"" placeholder:"DIR" help:"Directory of the runs and of report.html. Existing runs are resumed."`

	Context string `placeholder:"N" help:"Also evaluate with this context, in tokens, such as 4096, or as a multiple of the training context, such as 4x."`
	svgFlag
	runThreadsFlag
}

func (labAblateCmd) Help() string {
	return example("anneal lab ablate examples/tiny.yaml train.steps=200 --with optimizer.name=lion --with "+
		"\"optimizer.name=sgd optimizer.lr=0.1\" --out runs/which",
		"anneal lab ablate examples/ablation.yaml --with optimizer.name=muon --seeds 5 --tune optimizer.lr=3 "+
			"--out runs/muon",
		"anneal lab ablate examples/ablation.yaml --with model.attention=window:64 --with model.attention=longnet:64 "+
			"--equal compute --context 4x --out runs/long") +
		"\n\nVariants differ only in what --with says. Each is compared with the first seed by seed, " +
		"since runs with the same seed share their data, its order and their initial weights. Intervals are 95 % " +
		"(Student's t); a difference counts as seen if its probability by chance is below 5 %, corrected for the " +
		"number of variants (Holm). Small models are trained several at a time, one thread each, with the same " +
		"bits as alone."
}

// tuning reads KEY=N.
func (c labAblateCmd) tuning() (t lab.Tuning, err error) {
	if c.Tune == "" {
		return t, nil
	}
	name, values, _ := strings.Cut(c.Tune, "=")
	t.Values, err = strconv.Atoi(values)
	if keys := config.Find(name); len(keys) == 1 {
		t.Key = keys[0]
	}
	if err != nil || t.Key == "" || t.Values < 3 || t.Values%2 == 0 || t.Values > 15 {
		return t, &usageError{"--tune " + c.Tune + " is not a key with an odd number of values, 3 to 15",
			"try --tune optimizer.lr=3"}
	}
	return t, nil
}

func (c labAblateCmd) options(s *session) (lab.AblateOptions, error) {
	o := lab.AblateOptions{
		Config: c.Config, Overrides: c.Overrides, Out: c.Out, Threads: int(c.Threads), Seeds: c.Seeds, Equal: c.Equal,
		Context: c.Context, OnProgress: s.trainProgress(0), OnRun: func(text string) { s.notef("%s", text) },
	}
	if c.Seeds < 1 || c.Seeds > 1000 {
		return o, &usageError{fmt.Sprintf("--seeds %d: want 1 to 1,000 runs of each variant", c.Seeds), "try --seeds 3"}
	}
	for _, w := range c.With {
		if strings.TrimSpace(w) == "" {
			return o, &usageError{"--with is empty: the configured run is always trained, without it",
				`try --with "optimizer.name=lion"`}
		}
		o.Variants = append(o.Variants, overridesIn(w))
	}
	var err error
	o.Tune, err = c.tuning()
	return o, err
}

func (c labAblateCmd) Run(s *session) error {
	start := time.Now()
	c.remark(s)
	o, err := c.options(s)
	if err != nil {
		return err
	}
	return s.whileTraining(func(ctx context.Context) error {
		list, err := lab.Ablate(ctx, o)
		if err != nil {
			return err
		}
		if list == nil {
			return &stopped{"stopped; all runs are saved\n  give the same command again to continue"}
		}
		c.print(s, list, o.Tune)
		report := filepath.Join(c.Out, "report.html")
		picture, err := lab.AblationChart(list, s.warn)
		if err == nil {
			err = s.draw(picture, c.SVG)
		}
		var dropped []string
		if err == nil {
			dropped, err = lab.WriteAblation(report, o, list, picture, c.again())
		}
		if err != nil {
			return err
		}
		if len(dropped) > 0 {
			s.warn(fmt.Sprintf("%s no longer has %s of an earlier ablation, such as %s: another --out keeps both "+
				"reports", report, units.Count(len(dropped), "run"), dropped[0]))
		}
		elapsed := time.Since(start)
		s.printf("report: %s\n", report)
		s.closing(fmt.Sprintf("%d runs and report.html", len(list)*c.Seeds), c.Out, elapsed, nextOfAblation(list))
		return s.emit(map[string]any{
			"variants": ablatedJSON(list), "out": c.Out, "equal": c.Equal, "seeds": c.Seeds,
			"search": searchJSON(list), "seconds": elapsed.Seconds(),
		})
	})
}

// again returns the command that repeats the ablation.
func (c labAblateCmd) again() string {
	words := append([]string{"anneal", "lab", "ablate", c.Config}, c.Overrides...)
	for _, w := range c.With {
		words = append(words, "--with", w)
	}
	words = append(words, "--seeds", strconv.Itoa(c.Seeds), "--equal", c.Equal)
	if c.Tune != "" {
		words = append(words, "--tune", c.Tune)
	}
	if c.Context != "" {
		words = append(words, "--context", c.Context)
	}
	if c.Threads > 0 {
		words = append(words, "--threads", strconv.Itoa(int(c.Threads)))
	}
	return command(append(words, "--out", c.Out)...)
}

// print prints a line for each variant.
func (c labAblateCmd) print(s *session, list []lab.Ablated, t lab.Tuning) {
	wide := len("variant")
	for _, v := range list {
		wide = max(wide, len(v.Name))
	}
	s.printf("%-*s  %6s  %13s  %8s", wide, "variant", "steps", "val bits/byte", "memory")
	if t.Key != "" {
		s.printf("  %12s", t.Key)
	}
	if c.Context != "" {
		s.printf("  %10s", "at "+c.Context)
	}
	if c.Equal == lab.EqualMemory {
		s.printf("  %11s  %10s", "micro-batch", "tokens/s")
	}
	s.printf("  against the first\n")
	for _, v := range list {
		s.printf("%-*s  %6d  %13s  %8s", wide, v.Name, v.Config.Train.Steps, bitsOf(v), memorySize(v.ArenaBytes()))
		if t.Key != "" {
			edge := ""
			if v.AtEdge {
				edge = " (edge)"
			}
			s.printf("  %12s", fmt.Sprintf("%.3g%s", v.Value, edge))
		}
		if c.Context != "" {
			s.printf("  %10s", farOf(v))
		}
		if c.Equal == lab.EqualMemory {
			s.printf("  %11d  %10s", v.Config.Train.MicroBatch, speedOf(v))
		}
		s.printf("  %s\n", v.Verdict())
	}
	if t.Key != "" {
		cost := lab.CostOfSearch(list)
		s.printf("search: at least %d values of %s for each variant, %d runs more than without it, %.0f %% of all "+
			"tokens; if the best is at an edge, a value beyond it may be better\n",
			t.Values, t.Key, cost.Runs, 100*cost.Share)
	}
	if c.Equal == lab.EqualTime {
		s.printf("steps are for equal time at the speeds of this machine: another machine gives other figures\n")
	}
}

// bitsOf is the mean loss of a variant for people.
func bitsOf(v lab.Ablated) string {
	x := v.Mean()
	if math.IsNaN(x) {
		return "unknown"
	}
	return fmt.Sprintf("%.4f", x)
}

// farOf is the mean loss at another context for people.
func farOf(v lab.Ablated) string {
	x := v.Far()
	if math.IsNaN(x) {
		return "cannot"
	}
	return fmt.Sprintf("%.4f", x)
}

// speedOf is the mean speed of a variant's runs for people, "–" if a run was trained by an earlier command.
func speedOf(v lab.Ablated) string {
	x := v.TokensPerSecond()
	if math.IsNaN(x) || x == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", x)
}

// nextOfAblation returns the command that generates with the first seed of the variant with the lowest mean; its best
// seed would be a matter of luck. Variants of which a run diverged do not count.
func nextOfAblation(list []lab.Ablated) string {
	next, lowest := "", math.Inf(1)
	for _, v := range list {
		diverged := slices.ContainsFunc(v.Runs, func(r lab.Compared) bool { return r.Diverged })
		if bits := v.Mean(); !diverged && bits < lowest {
			next, lowest = command("anneal", "generate", v.Runs[0].Run), bits
		}
	}
	return next
}

// overridesIn splits "key=value key=value"; a word without = belongs to the value before it, as in "64 over 10%".
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

// searchJSON returns the cost of --tune; nil without it.
func searchJSON(list []lab.Ablated) any {
	if len(list[0].Tuned) == 0 {
		return nil
	}
	c := lab.CostOfSearch(list)
	return map[string]any{"runs": c.Runs, "tokens": c.Tokens, "share": c.Share}
}

func ablatedJSON(list []lab.Ablated) (variants []map[string]any) {
	for _, v := range list {
		variant := map[string]any{
			"name": v.Name, "change": number(v.Change), "interval": number(v.Interval), "p": number(v.P),
			"verdict": v.Verdict(), "arena_bytes": v.ArenaBytes(), "steps": v.Config.Train.Steps,
			"micro_batch":       v.Config.Train.MicroBatch,
			"runs":              comparedJSON(v.Runs),
			"val_bits_per_byte": number(v.Mean()),
		}
		if v.Value > 0 {
			var tried []map[string]any
			for _, t := range v.Tuned {
				tried = append(tried, map[string]any{"value": t.Value, "run": comparedJSON(t.Runs)[0]})
			}
			variant["value"], variant["at_edge"], variant["tried"] = v.Value, v.AtEdge, tried
		}
		variants = append(variants, variant)
	}
	return variants
}

func comparedJSON(all []lab.Compared) (runs []map[string]any) {
	for _, r := range all {
		run := map[string]any{"run": r.Run, "seed": r.Seed, "diverged": r.Diverged, "change": number(r.Change)}
		if !r.Diverged {
			run["val_bits_per_byte"], run["train_loss"], run["steps"] = number(r.ValBitsPerByte),
				number(r.TrainLoss), r.Step
			run["far_bits_per_byte"] = number(r.Far)
			run["tokens_per_second"], run["weights_hash"] = number(r.TokensPerSecond), r.WeightsHash
		}
		runs = append(runs, run)
	}
	return runs
}
