package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anneal/config"
	"anneal/internal/units"
	"anneal/plan"
	"anneal/run"
	"anneal/train"
)

type trainCmd struct {
	Config    string   `arg:"" optional:"" help:"The YAML config; a run's config.yaml will do. With --recipe it may be left out."`
	Overrides []string `arg:"" optional:"" name:"section.key=value" help:"Values that replace those of the config."`
	Recipe    string   `placeholder:"NAME" complete:"recipes" help:"Start from this recipe (see anneal recipe list). The config and the values replace parts of it."`
	Scale     float64  `placeholder:"N" help:"Make the recipe's model and its run N times smaller."`

	InitFrom string `placeholder:"DIR" help:"Start from the weights of a run or of a Hugging Face model."`
	InitStep count  `placeholder:"N" help:"Step of the checkpoint to take, if DIR is a run. 0: the newest."`
	Only     string `default:"model" enum:"model" help:"What to load from DIR. The only choice is model: the weights, without optimizer state and step."`

	Out    string     `placeholder:"RUN" help:"Directory of the run. It must be new or empty."`
	Budget *inMinutes `placeholder:"TIME" help:"Choose size, batch, learning rate and steps for this much time, such as 30m. Needs data.path, but no config."`
	DryRun bool       `help:"Print the resolved config and the memory that the run needs. Train nothing."`
	Memory byteSize   `placeholder:"SIZE" help:"With --dry-run: how much memory a rank has, such as 80GB. Default: this machine's."`
	rankFlags
	runDeviceFlag
	runThreadsFlag

	budgeted *plan.Budgeted // derived from Budget
}

func (trainCmd) Help() string {
	return example("anneal train examples/tiny.yaml data.path=data/go train.steps=500 --out runs/go",
		"anneal train examples/tiny.yaml data.path=data/go parallel.ranks=2 --out runs/go",
		"anneal train examples/tiny.yaml data.path=data/go --dry-run",
		"anneal train --budget 30m data.path=data/go --out runs/go",
		"anneal train --budget 30m data.path=data/go model.dim=256 --dry-run",
		"anneal train --recipe llama2-70b --dry-run",
		"anneal train --recipe llama2-70b parallel.zero=3 --dry-run --ranks 64",
		"anneal train --recipe gpt3-175b parallel.tensor=8 parallel.pipeline=4 --dry-run --ranks 1024 --memory 80GB",
		"anneal train --recipe llama2-70b --scale 10000 data.path=data/go --out runs/llama2-7m",
		"anneal train examples/continue.yaml data.path=data/go --init-from models/qwen3 --out runs/tuned") +
		"\n\n--init-from takes the model's shape and weights from DIR, and everything else from CONFIG; " +
		"the run begins at step 0. The optimizer's state is not loaded: it belongs to the schedule that made it. " +
		"`anneal branch` continues with weights and state. Build the data with the tokenizer of the weights: " +
		"anneal data build --tokenizer DIR/tokenizer.json.\n\n" +
		"Ctrl-C saves the run and prints how to continue; a second Ctrl-C stops at once. `anneal explain` " +
		"lists the keys."
}

func (c trainCmd) Run(s *session) error {
	start := time.Now()
	join := s.join
	if c.DryRun && c.Budget == nil { // with a budget all ranks are measured
		join = s.pretend
	}
	if err := join(&c.rankFlags); err != nil {
		return err
	}
	cfg, plan, err := c.prepare(s)
	if stop := (*interrupted)(nil); !run.Agreed(err) && !errors.As(err, &stop) { // a signal reaches all ranks
		err = s.together(err)
	}
	if err != nil || c.DryRun {
		return err
	}
	o := s.trainOptions(c.Out, cfg)
	o.Config, o.Plan = cfg, plan
	if c.budgeted.Derives("train.steps") {
		// The time for measuring counts. All ranks have a time limit or none has, and rank 0's clock decides.
		o.Time = max(c.Budget.duration()-time.Since(start), time.Millisecond)
		o.MostSteps = c.budgeted.MostSteps
	}
	return s.whileTraining(func(ctx context.Context) error {
		r, err := run.Run(ctx, o)
		if err != nil {
			return err
		}
		return s.finishRun(r, finished{dir: c.Out, plan: plan, elapsed: time.Since(start), next: useOf(c.Out, cfg)})
	})
}

// prepare reads the config and prints what is about to run, or, for a dry run, what would run.
func (c *trainCmd) prepare(s *session) (*config.Config, *plan.Foresight, error) {
	from, err := c.sources(s)
	if err == nil && c.Budget != nil { // before it takes time to measure
		err = c.checkOut(s, from)
	}
	if err != nil {
		return nil, nil, err
	}
	if c.Budget != nil {
		from.Complete = c.completeByBudget(s)
	}
	cfg, err := run.LoadConfig(from)
	if err != nil {
		return nil, nil, err
	}
	if c.Budget == nil { // a config's own faults come first
		if err := c.checkOut(s, from); err != nil {
			return nil, nil, err
		}
	}
	printBudget(s, c.budgeted)
	switch {
	case c.DryRun && c.budgeted != nil:
		return nil, nil, dryRunBudget(s, cfg, int64(c.Memory), c.budgeted)
	case c.DryRun && c.Recipe != "":
		return nil, nil, dryRunRecipe(s, c.Recipe, cfg, int64(c.Memory))
	case c.DryRun:
		return nil, nil, dryRun(s, cfg, int64(c.Memory))
	}
	plan, err := s.header(cfg, cfg.Threads)
	if err == nil && s.world.Size() == 1 {
		err = refuse(plan)
	}
	return cfg, plan, err
}

// checkOut checks where the run goes.
func (c trainCmd) checkOut(s *session, from config.Sources) error {
	name := "budget"
	if from.File != "" {
		name = runName(from.File)
	}
	switch {
	case !c.DryRun && c.Memory > 0:
		return &usageError{"--memory is for plans: training takes what it needs", "add --dry-run"}
	case !c.DryRun && c.Out == "":
		return &usageError{"train needs a directory for the run", "try --out runs/" + cmp.Or(c.Recipe, name)}
	case c.Out != "" && s.world.Rank() == 0:
		return run.CheckNewRun(c.Out)
	}
	return nil
}

// sources returns the parts of the config; with a recipe, the first argument may already be an override.
func (c trainCmd) sources(s *session) (config.Sources, error) {
	overrides, err := s.rankOverrides(c.rankFlags, slices.Clone(c.Overrides))
	if err != nil {
		return config.Sources{}, err
	}
	if c.Device != "" {
		overrides = append(overrides, "device="+c.Device)
	}
	if c.Threads > 0 {
		overrides = append(overrides, fmt.Sprintf("threads=%d", c.Threads))
	}
	from := config.Sources{Recipe: c.Recipe, Scale: c.Scale, Planning: c.DryRun}
	from.File, from.Overrides = fileAndKeys(c.Config, overrides)
	if c.InitFrom != "" {
		from.Overrides = append(from.Overrides, "init.from="+c.InitFrom)
	}
	if c.InitStep > 0 {
		from.Overrides = append(from.Overrides, fmt.Sprintf("init.step=%d", c.InitStep))
	}
	if from.File == "" && from.Recipe == "" && c.Budget == nil {
		return from, &usageError{"train needs a config: a YAML file, or --recipe with a name of `anneal recipe list`",
			"try `anneal train --help`"}
	}
	return from, nil
}

// fileAndKeys returns the path of a config, if the first argument is one, and the overrides.
func fileAndKeys(first string, overrides []string) (string, []string) {
	if _, err := os.Stat(first); err != nil && strings.Contains(first, "=") {
		return "", append([]string{first}, overrides...)
	}
	return first, overrides
}

func runName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// printRamps prints how batches grow and sequences lengthen, if they do.
func printRamps(s *session, cfg *config.Config) {
	if ramp, err := cfg.BatchRamp(); err == nil && ramp.Stages != nil {
		until := ramp.Steps(ramp.Stages[len(ramp.Stages)-1].Until)
		s.prosef("#   ", "# %s tokens a step, the full batch from step %s on; the schedule counts tokens\n",
			stepTokens(cfg), units.Commas(until+1))
	}
	if ramp, err := cfg.LengthRamp(); err == nil && ramp.Steps > 0 {
		s.prosef("#   ", "# sequences of %d to %d tokens, the full context from step %s on\n",
			ramp.Length(1), ramp.Full, units.Commas(ramp.Steps+1))
	}
}

// foresee returns the plan of a run on this machine, or for ranks that have that much memory each.
func foresee(cfg *config.Config, memory int64) (*plan.Foresight, error) {
	p, err := plan.Foresee(cfg)
	if err == nil && memory > 0 {
		p.Within(cfg, memory)
	}
	return p, err
}

// dryRun prints what would run: the resolved config, then parameters and memory.
func dryRun(s *session, cfg *config.Config, memory int64) error {
	p, err := foresee(cfg, memory)
	if err != nil {
		return err
	}
	head, values, _ := strings.Cut(string(cfg.YAML()), "\n")
	s.prosef("# ", "%s\n", head)
	s.prosef(strings.Repeat(" ", 35)+"# ", "%s\n", values)
	printNeeds(s, cfg, p)
	if err := unfitBeside(p, p); err != nil {
		return err
	}
	return s.emit(p)
}

// printNeeds prints parameters, operations and memory.
func printNeeds(s *session, cfg *config.Config, p *plan.Foresight) {
	epochs := ""
	if p.Epochs > 0 {
		epochs = fmt.Sprintf(" (%.2f times the data)", p.Epochs)
		if p.Epochs < 0.01 {
			epochs = fmt.Sprintf(" (%.1g times the data)", p.Epochs)
		}
	}
	active := ""
	if p.Active != p.Parameters {
		active = fmt.Sprintf(", of which a token uses %s", units.Commas(p.Active))
	}
	s.prosef("#   ", "# %s parameters%s, %.3g FLOPs per token, %s tokens in all%s\n", units.Commas(p.Parameters),
		active, p.FLOPsPerToken, units.Commas(p.Tokens), epochs)
	printRamps(s, cfg)
	if p.Mix != nil {
		for _, line := range mixTable(p.Mix) {
			s.prosef("#     ", "#   %s\n", line)
		}
	}
	names := 15
	for _, i := range p.Memory {
		names = max(names, len(i.Name))
	}
	for _, i := range p.Memory {
		s.prosef("#"+strings.Repeat(" ", names+17), "#   %-*s %11s  %s\n", names, i.Name, memorySize(i.Bytes), i.Note)
	}
	total := "total"
	if p.Ranks != nil {
		total = fmt.Sprint("rank ", p.Ranks.Fullest)
	}
	s.printf("#   %-*s %11s\n", names, total, memorySize(p.Memory.Total()))
	if p.Ranks != nil {
		printRanks(s, cfg, p)
	}
	printTime(s, p)
	if text := initialWeights(cfg); text != "" {
		s.printf("# %s\n", text)
	}
	for _, remark := range p.Remarks() {
		s.prosef("#   ", "# %s\n", remark)
	}
	s.prosef("#   ", "# %s\n", p.Verdict())
}

// refuse returns an error that lists all parts of a run that does not fit; nil if it fits.
func refuse(p *plan.Foresight) error {
	if p.Fits {
		return nil
	}
	var parts []string
	for _, i := range p.Memory {
		parts = append(parts, i.Name+" "+memorySize(i.Bytes))
	}
	return unfit(p, strings.Join(parts, ", "))
}

// unfit returns the error of a run that does not fit.
func unfit(p *plan.Foresight, detail string) *train.MemoryError {
	return &train.MemoryError{
		Need: p.Bytes, Available: p.Available, Detail: detail, Enough: p.Least.Enough(), Offloading: p.Offloading,
	}
}
