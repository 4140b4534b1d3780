package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"anneal/chart"
	"anneal/config"
	"anneal/plan"
	"anneal/run"
	"anneal/train"
	"anneal/use"
)

// CompareOptions says which configurations to train for a comparison. All runs share the file, the data and the seed,
// so that they differ only by their overrides.
type CompareOptions struct {
	Config    string     // the YAML file
	Overrides []string   // overrides of all runs
	Variants  [][]string // further overrides, one list per run; the run without any comes first
	Out       string     // directory of the runs
	Threads   int

	// SameCompute gives each variant without its own train.steps as many steps as use the operations of the first
	// run, by plan.Foresight.FLOPsPerToken.
	SameCompute bool
	// Context, if not "", is a second row length for the evaluation, in the syntax of use.Reach: 4x.
	Context string

	OnRun      func(name string, i, n int) // called when a run begins
	OnProgress func(train.Event)
}

// Compared is the result of one of the runs.
type Compared struct {
	Name string // its overrides, or "as configured"
	Run  string // its directory
	*run.Result
	Diverged bool    // the guard stopped the run; it has no figures
	Change   float64 // relative change of the bits per byte from the first run; NaN if either is unknown
	// bits per byte on rows of CompareOptions.Context; NaN without it, or if the model cannot read them
	Far float64
}

// baseline is the name of the run without further overrides.
const baseline = "as configured"

// Compare trains the configured run and each variant, one after the other. It resumes runs that are already in Out,
// so that an interrupted comparison loses nothing. It checks every configuration before the first step.
func Compare(ctx context.Context, o CompareOptions) ([]Compared, error) {
	if err := run.CheckForRuns(o.Out); err != nil {
		return nil, err
	}
	variants := append([][]string{nil}, o.Variants...)
	configs := make([]*config.Config, len(variants))
	for i, v := range variants {
		cfg, err := run.LoadConfig(config.Sources{File: o.Config, Overrides: slices.Concat(o.Overrides, v)})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variantName(v), err)
		}
		if o.Context != "" {
			if _, err := use.ContextOf(o.Context, cfg.Model.Context); err != nil {
				return nil, fmt.Errorf("%s: %w", variantName(v), err)
			}
		}
		configs[i] = cfg
	}
	if o.SameCompute {
		for i := range configs[1:] {
			if err := o.giveSteps(configs, i+1); err != nil {
				return nil, fmt.Errorf("%s: %w", variantName(o.Variants[i]), err)
			}
		}
	}
	var all []Compared
	for i, cfg := range configs {
		c := Compared{
			Name: variantName(variants[i]), Run: filepath.Join(o.Out, directoryName(i, variants[i])),
			Change: math.NaN(), Far: math.NaN(),
		}
		o.OnRun(c.Name, i, len(configs))
		err := c.train(ctx, cfg, o)
		if err != nil {
			return all, fmt.Errorf("%s: %w", c.Name, err)
		}
		if c.Result != nil && c.Interrupted {
			return all, nil
		}
		if i > 0 && !c.Diverged && !all[0].Diverged {
			c.Change = c.ValBitsPerByte/all[0].ValBitsPerByte - 1
		}
		if o.Context != "" && !c.Diverged {
			if c.Far, err = c.far(ctx, cfg, o); err != nil {
				return all, fmt.Errorf("%s: %w", c.Name, err)
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// giveSteps sets the steps of configuration i so that it uses the operations of the first.
func (o CompareOptions) giveSteps(configs []*config.Config, i int) error {
	v := o.Variants[i-1]
	if slices.ContainsFunc(v, func(s string) bool { return strings.HasPrefix(s, "train.steps=") }) {
		return nil
	}
	var step [2]float64 // operations per step
	for n, cfg := range []*config.Config{configs[0], configs[i]} {
		f, err := plan.Foresee(cfg.Clone())
		if err != nil {
			return err
		}
		step[n] = f.FLOPsPerToken * float64(f.Tokens) / float64(cfg.Train.Steps)
	}
	steps := max(int(math.Round(float64(configs[0].Train.Steps)*step[0]/step[1])), 1)
	cfg, err := run.LoadConfig(config.Sources{
		File: o.Config, Overrides: slices.Concat(o.Overrides, []string{fmt.Sprintf("train.steps=%d", steps)}, v),
	})
	configs[i] = cfg
	return err
}

// far evaluates a run on rows of o.Context. A model that cannot read such rows has no figure.
func (c *Compared) far(ctx context.Context, cfg *config.Config, o CompareOptions) (float64, error) {
	r, err := use.OpenWith(c.Run, use.OpenOptions{
		Device: cfg.Device, Threads: o.Threads, Reach: use.Reach{Context: o.Context},
	})
	var cannot config.Problem
	switch {
	case errors.As(err, &cannot) && cannot.Key == "model.context":
		return math.NaN(), nil
	case err != nil:
		return 0, err
	}
	defer r.Close()
	sources, err := cfg.Sources()
	if err != nil {
		return 0, err
	}
	e, err := r.EvaluateSources(ctx, sources, cfg.Train.EvalTokens, nil)
	return e.BitsPerByte, err
}

// train trains or finishes the run. Divergence is a result, not an error.
func (c *Compared) train(ctx context.Context, cfg *config.Config, o CompareOptions) (err error) {
	begin := run.Run
	if run.Exists(c.Run) {
		if err := sameRun(c.Run, cfg); err != nil {
			return err
		}
		begin = run.Resume
	}
	c.Result, err = begin(ctx, run.Options{Config: cfg, Dir: c.Run, Threads: o.Threads, OnProgress: o.OnProgress})
	var away *run.DivergedError
	if errors.As(err, &away) {
		c.Diverged, err = true, nil
	}
	return err
}

// sameRun returns an error if the run in dir is not a run of cfg.
func sameRun(dir string, cfg *config.Config) error {
	was, err := run.Config(dir)
	if err != nil {
		return err
	}
	now := *cfg
	if now.Model.Vocab == 0 {
		now.Model.Vocab = was.Model.Vocab // set from the data set
	}
	if was.Guard.Rewound > 0 {
		now.Data.Skip = was.Data.Skip // the run went back by itself
	}
	if now.Init.Weights == "" {
		now.Init.Weights = was.Init.Weights // set from the weights that were read
	}
	if list := run.Changes(was, &now); len(list) > 0 {
		return fmt.Errorf("%s %w, with another configuration\n  %s\n  choose another --out",
			dir, run.ErrExists, strings.Join(list, "\n  "))
	}
	return nil
}

// CompareChart draws the losses of the runs over the tokens seen, smoothed so that the runs can be told apart. warn
// takes what is missing.
func CompareChart(all []Compared, warn func(string)) (*chart.Chart, error) {
	c := &chart.Chart{
		Title: "Training loss, running mean",
		X:     chart.Axis{Label: "tokens"},
		Y:     chart.Axis{Label: "loss (nats per token)", Log: true},
	}
	for _, r := range all {
		curve, err := run.Losses(r.Run, warn)
		if err != nil {
			return nil, err
		}
		c.Series = append(c.Series, chart.Series{Name: r.Name, X: curve.Tokens, Y: smooth(curve.Loss)})
	}
	return c, nil
}

// smooth returns the running mean over about twenty values.
func smooth(values []float64) []float64 {
	var mean debiased
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = mean.add(v, 0.95)
	}
	return out
}

func variantName(overrides []string) string {
	if len(overrides) == 0 {
		return baseline
	}
	return strings.Join(overrides, " ")
}

// directoryName returns a name that is valid in every file system: "02-optimizer.name-lion".
func directoryName(i int, overrides []string) string {
	name := fmt.Sprintf("%02d-%s", i, variantName(overrides))
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_':
			return r
		}
		return '-'
	}, name)
}
