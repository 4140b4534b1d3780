package lab

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anneal/config"
	"anneal/dataset"
	"anneal/model"
	"anneal/plan"
	"anneal/prepare"
	"anneal/run"
	"anneal/train"
	"anneal/use"
)

// DemoOptions says how long the demo may train and where it writes its files. The first limit that is reached counts.
type DemoOptions struct {
	Minutes float64 // of training, 0 for no limit
	Steps   int     // 0 for as many as fit in Minutes
	Out     string  // directory for the data set and the run
	Seed    uint64
	Threads int

	SampleTokens int // tokens of each sample

	OnStage    func(string)                         // says what begins
	OnText     func(what string, read, total int64) // progress of reading
	OnProgress func(train.Event)                    // progress of training
	OnSample   func(text string)                    // receives the samples, piece by piece
}

// DemoResult holds the result of the run and its directory.
type DemoResult struct {
	*run.Result
	Run, Data string // directories
}

const (
	demoSteps   = 1000 // where nothing limits
	demoMinutes = 3    // time that a run of fixed length is sized for
)

// demoPrompts are beginnings of text that are frequent in the standard library.
var demoPrompts = []string{"// Copyright", "func (b *Buffer) Read", "// ReadFile reads"}

// Demo trains a small model on the source of the Go standard library, from text to samples: a tokenizer, a data set
// with held-out files, a run, a few continuations. Existing parts in o.Out are used: a data set as it is, and a run is
// resumed. When ctx ends during training the run is saved.
func Demo(ctx context.Context, o DemoOptions) (*DemoResult, error) {
	result := &DemoResult{Run: filepath.Join(o.Out, "run"), Data: filepath.Join(o.Out, "data")}
	var err error
	if result.Result, err = o.train(ctx, result.Run, result.Data); err != nil {
		return nil, err
	}
	if !result.Interrupted {
		err = o.sample(ctx, result.Run)
	}
	return result, err
}

// train resumes the run if it exists. Otherwise it makes the run, and the data set unless that exists.
func (o DemoOptions) train(ctx context.Context, dir, data string) (*run.Result, error) {
	if run.Exists(dir) {
		o.OnStage(dir + " exists and is resumed; `anneal demo --out DIR` starts another")
		return run.Resume(ctx, run.Options{Dir: dir, Threads: o.Threads, OnProgress: o.OnProgress,
			Warn: o.OnStage, Note: o.OnStage})
	}
	if _, err := os.Stat(data); err != nil { // an earlier demo has left nothing here
		if err := run.CheckEmpty(o.Out); err != nil {
			return nil, err
		}
	}
	if dataset.Exists(data) {
		o.OnStage("data: " + data + " exists and is used as it is")
	} else {
		m, err := prepare.SampleData(ctx, prepare.SampleOptions{
			Dir: data, Threads: o.Threads, OnStage: o.OnStage, OnText: o.OnText,
		})
		if err != nil {
			return nil, err
		}
		o.OnStage(fmt.Sprintf("data: %.1f million tokens to train on, %d documents held out",
			float64(m.Train.Tokens)/1e6, m.Val.Documents))
	}
	begin := time.Now()
	cfg, budgeted, err := o.config(ctx, data)
	if err != nil {
		return nil, err
	}
	options := run.Options{Config: cfg, Dir: dir, OnProgress: o.OnProgress, Warn: o.OnStage, Note: o.OnStage}
	if o.timed() {
		options.Time, options.MostSteps = o.time()-time.Since(begin), budgeted.MostSteps
	}
	return run.Run(ctx, options)
}

// config returns the config of the demo's run. It is derived from the time or, with a fixed number of steps, from
// three minutes and a fixed width, so that the run does not depend on the speed of the machine.
func (o DemoOptions) config(ctx context.Context, data string) (*config.Config, *plan.Budgeted, error) {
	set := []string{
		"data.path=" + data, fmt.Sprintf("seed=%d", o.Seed), fmt.Sprintf("threads=%d", o.Threads),
	}
	if !o.timed() {
		set = append(set, fmt.Sprintf("train.steps=%d", cmp.Or(o.Steps, demoSteps)), "model.dim=128",
			fmt.Sprintf("train.minutes=%g", o.Minutes))
	}
	var budgeted *plan.Budgeted
	cfg, err := config.Sources{Overrides: set, Complete: func(cfg *config.Config) error {
		dev, err := train.OpenDevice(cfg, "", 0)
		if err != nil {
			return err
		}
		defer dev.Close()
		b, err := NewBudget(ctx, o.time(), cfg, dev, 0)
		if err != nil {
			return err
		}
		o.OnStage("measuring how fast models of several sizes train")
		budgeted, err = b.Derive(cfg)
		return err
	}}.Load()
	if err == nil {
		o.OnStage(fmt.Sprintf("model: %d layers of width %d on %d ranks, %s: %d steps at first", cfg.Model.Layers,
			cfg.Model.Dim, cfg.Parallel.Ranks, cfg.Optimizer.Name, cfg.Train.Steps))
	}
	return cfg, budgeted, err
}

// timed reports whether the run's length is derived from the time.
func (o DemoOptions) timed() bool { return o.Steps == 0 && o.Minutes > 0 }

// time returns the time that the run is sized for.
func (o DemoOptions) time() time.Duration {
	return time.Duration(cmp.Or(o.Minutes, demoMinutes) * float64(time.Minute))
}

// sample continues each of the demo's prompts with the trained model.
func (o DemoOptions) sample(ctx context.Context, dir string) error {
	r, err := use.Open(dir, o.Threads)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, prompt := range demoPrompts {
		o.OnSample("\n--- " + strings.ReplaceAll(prompt, "\n", " ") + "…\n" + prompt)
		_, err := r.Generate(ctx, use.GenerateOptions{
			Prompt: prompt, MaxTokens: o.SampleTokens,
			Sampling: model.Sampling{Temperature: 0.7, TopP: 0.95, Seed: o.Seed},
		}, o.OnSample)
		if err != nil {
			return err
		}
		o.OnSample("\n")
	}
	o.OnSample("\n")
	return nil
}
