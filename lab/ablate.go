package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"anneal/config"
	"anneal/plan"
	"anneal/run"
	"anneal/train"
	"anneal/use"
)

// AblateOptions says which configurations to train for an ablation. All runs share the file and the data, so that they
// differ only by their overrides and, within a variant, by their seeds.
type AblateOptions struct {
	Config    string     // the YAML file
	Overrides []string   // overrides of all runs
	Variants  [][]string // further overrides, one list for each variant; the configuration without any comes first
	Out       string     // directory of the runs
	Threads   int
	Seeds     int // runs of each variant, with the seeds from that of the configuration on

	Equal string // the resource that all variants have the same amount of: EqualTokens …
	// Tune, unless its key is "", searches the best value of a number separately for every variant.
	Tune Tuning
	// Context, if not "", is a second row length for the evaluation, in the syntax of use.Reach: 4x.
	Context string

	OnRun      func(text string) // called when a run begins, from several goroutines
	OnProgress func(train.Event) // called only if one run is trained at a time

	pace *pace // of the runs
}

// An Ablated is a variant of an ablation.
type Ablated struct {
	Name     string     // its overrides, or "as configured"
	Runs     []Compared // one for each seed
	Tuned    []Ablated  // the values that were tried, with one run each
	Value    float64    // the best tuned value; 0 without a search
	AtEdge   bool       // the best value is the smallest or the largest that was tried
	Change   float64    // mean relative change of the bits per byte from the first variant with the same seed
	Interval float64    // half of its 95 % interval; NaN with one seed
	P        float64    // probability under no change, corrected for the number of variants; NaN with one seed
	Config   *config.Config

	overrides []string // all of Config's
}

// Mean returns the mean of the bits per byte of the runs that did not diverge; NaN if there are none.
func (a *Ablated) Mean() float64 {
	return a.MeanOf(func(r Compared) float64 { return r.ValBitsPerByte })
}

// MeanOf returns the mean of a figure of the runs that did not diverge; NaN if there are none.
func (a *Ablated) MeanOf(figure func(Compared) float64) float64 {
	var all []float64
	for _, r := range a.finite() {
		all = append(all, figure(r))
	}
	return mean(all)
}

// Far returns the mean of the bits per byte on rows of AblateOptions.Context; NaN if the model cannot read them.
func (a *Ablated) Far() float64 {
	return a.MeanOf(func(r Compared) float64 { return r.Far })
}

// TokensPerSecond returns the mean speed of the runs; NaN if one was trained by an earlier command.
func (a *Ablated) TokensPerSecond() float64 {
	return a.MeanOf(func(r Compared) float64 { return r.TokensPerSecond })
}

// ArenaBytes is the memory laid out for the tensors of each run; 0 if all diverged.
func (a *Ablated) ArenaBytes() (sum int64) {
	finite := a.finite()
	if len(finite) == 0 {
		return 0
	}
	for _, arena := range finite[0].Arenas {
		sum += arena.Bytes
	}
	return sum
}

// finite returns the runs that did not diverge.
func (a *Ablated) finite() (list []Compared) {
	for _, r := range a.Runs {
		if !r.Diverged {
			list = append(list, r)
		}
	}
	return list
}

// Compared is the result of one run.
type Compared struct {
	Run  string // its directory
	Seed uint64
	*run.Result
	Diverged bool    // the guard stopped the run; it has no figures
	Change   float64 // relative change of the bits per byte from the first variant's run; NaN if either is unknown
	// bits per byte on rows of AblateOptions.Context; NaN without it, or if the model cannot read them
	Far float64
}

// baseline is the name of the variant without further overrides.
const baseline = "as configured"

// alpha is the probability of finding a difference although there is none.
const alpha = 0.05

// Ablate trains the configuration and each variant, with several seeds. Small models are trained several at a time. It
// resumes runs that are already in Out, so an interrupted ablation loses nothing, and returns nil if ctx ended. It
// checks every configuration before the first step.
func Ablate(ctx context.Context, o AblateOptions) ([]Ablated, error) {
	if err := run.CheckForRuns(o.Out); err != nil {
		return nil, err
	}
	list, err := o.variants()
	if err != nil {
		return nil, err
	}
	together := o.together(list)
	if together > 1 {
		o.OnProgress, o.Threads = nil, 1
	}
	if err := o.equalise(ctx, list); err != nil {
		return nil, ended(ctx, err)
	}
	o.pace = newPace(len(list) * (o.Seeds - o.Tune.seeds()))
	if err := o.tune(ctx, list, together); err != nil {
		return nil, ended(ctx, err)
	}
	left := 0
	for i := range list {
		for seed := range o.Seeds {
			left += o.place(&list[i], i, seed).left()
		}
	}
	o.pace.expect(left)
	err = Together(ctx, len(list)*o.Seeds, together, func(ctx context.Context, n int) (err error) {
		i, seed := n%len(list), n/len(list)
		v := &list[i]
		v.Runs[seed], err = o.train(ctx, v.Name, o.place(v, i, seed))
		return err
	})
	if err != nil {
		return nil, ended(ctx, err)
	}
	Compare(list)
	return list, nil
}

// ended returns err, or nil if err only says that ctx has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// variants parses and checks all configurations.
func (o AblateOptions) variants() ([]Ablated, error) {
	var list []Ablated
	for _, v := range append([][]string{nil}, o.Variants...) {
		a := Ablated{Name: variantName(v), Runs: make([]Compared, o.Seeds), overrides: slices.Concat(o.Overrides, v)}
		cfg, err := o.load(a.overrides)
		if err == nil && o.Context != "" {
			_, err = use.ContextOf(o.Context, cfg.Model.Context)
		}
		if err == nil {
			err = checkHeldOut(cfg)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		if a.Config = cfg; len(list) > 0 {
			if err := distinct(&a, list); err != nil {
				return nil, err
			}
		}
		list = append(list, a)
	}
	return list, nil
}

// distinct returns an error if a variant equals an earlier one, or if it has other seeds.
func distinct(a *Ablated, before []Ablated) error {
	if a.Config.Seed != before[0].Config.Seed {
		return config.Problem{
			Key: "seed", Message: fmt.Sprintf("%q has another seed, but runs are compared seed by seed", a.Name),
			Try: "seed=N for all runs, before --with; --seeds is how many follow it",
		}
	}
	for _, b := range before {
		if len(a.Config.Differences(b.Config)) == 0 {
			return config.Problem{
				Message: fmt.Sprintf("%q and %q are the same run", b.Name, a.Name),
				Try:     "variants that differ; --seeds repeats runs",
			}
		}
	}
	return nil
}

// load reads the configuration with overrides; the last override of a key counts.
func (o AblateOptions) load(overrides []string) (*config.Config, error) {
	var last []string
	for i, text := range overrides {
		key, _, _ := strings.Cut(text, "=")
		later := slices.ContainsFunc(overrides[i+1:], func(s string) bool { return strings.HasPrefix(s, key+"=") })
		if !later {
			last = append(last, text)
		}
	}
	return run.LoadConfig(config.Sources{File: o.Config, Overrides: last})
}

// together returns how many runs are trained at a time: one per core, with one thread each, if memory has room, the
// number of threads was not given, and no run has ranks or its own device; else one, on all threads.
func (o AblateOptions) together(list []Ablated) int {
	n := runtime.GOMAXPROCS(0)
	for _, v := range list {
		f, err := plan.Foresee(v.Config.Clone())
		if err != nil || f.Available == 0 || f.Ranks != nil || v.Config.Device != "cpu" || v.Config.Threads > 0 ||
			o.Threads > 0 {
			return 1
		}
		n = min(n, int(f.Available/f.Bytes))
	}
	return max(n, 1)
}

// directory returns the name of the directory for variant i's run with the first seed. Each value that is tried has
// its own directory, so that the best value need not be trained again.
func (a *Ablated) directory(i int) string {
	name := a.Name
	if a.Value > 0 {
		name += fmt.Sprintf(" %.4g", a.Value)
	}
	return directoryName(i, name)
}

// A placed run is one of an ablation: its configuration and its directory.
type placed struct {
	cfg *config.Config
	dir string
}

// place returns the run of variant i with a seed: the configured one plus an offset.
func (o AblateOptions) place(v *Ablated, i, seed int) placed {
	p := placed{v.Config, filepath.Join(o.Out, v.directory(i))}
	if seed > 0 {
		p.cfg = p.cfg.Clone()
		p.cfg.Seed += uint64(seed)
		p.dir += fmt.Sprintf("-seed-%d", p.cfg.Seed)
	}
	return p
}

// left is 0 if an earlier command finished the run, else 1.
func (p placed) left() int {
	if run.Exists(p.dir) && run.Summarize(p.dir).State == run.Finished {
		return 0
	}
	return 1
}

// train trains or finishes a run. Divergence is a result, not an error.
func (o AblateOptions) train(ctx context.Context, name string, p placed) (c Compared, err error) {
	c = Compared{Run: p.dir, Seed: p.cfg.Seed, Change: math.NaN(), Far: math.NaN()}
	if p.left() > 0 {
		o.OnRun(o.pace.begin(fmt.Sprintf("%s, seed %d", name, c.Seed)))
		defer o.pace.end()
	}
	c.Result, err = Finish(ctx, run.Options{Config: p.cfg, Dir: c.Run, Threads: o.Threads, OnProgress: o.OnProgress})
	var away *run.DivergedError
	switch {
	case errors.As(err, &away):
		c.Diverged, err = true, nil
	case err != nil:
		err = fmt.Errorf("%s, seed %d: %w", name, c.Seed, err)
	case c.Interrupted:
		err = context.Cause(ctx)
	case o.Context != "":
		c.Far, err = c.far(ctx, p.cfg, o)
	}
	return c, err
}

// far evaluates a run on rows of o.Context. If the model cannot read such rows, there is no figure.
func (c *Compared) far(ctx context.Context, cfg *config.Config, o AblateOptions) (float64, error) {
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

func variantName(overrides []string) string {
	if len(overrides) == 0 {
		return baseline
	}
	return strings.Join(overrides, " ")
}

// directoryName returns a name that is valid in every file system: "02-optimizer.name-lion".
func directoryName(i int, text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_':
			return r
		}
		return '-'
	}, fmt.Sprintf("%02d-%s", i, text))
}
