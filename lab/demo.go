package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"anneal/bench"
	"anneal/config"
	"anneal/dataset"
	"anneal/model"
	"anneal/prepare"
	"anneal/run"
	"anneal/train"
	"anneal/use"
)

// DemoOptions says how long the demo may train and where it leaves its files. The first limit that is reached counts.
type DemoOptions struct {
	Minutes float64 // of training, 0 for no limit
	Steps   int     // 0 for as many as fit in Minutes, by the measured speed
	Out     string  // directory for the data set and the run
	Seed    uint64
	Threads int

	SampleTokens int // tokens of each sample

	OnStage    func(string)                         // says what begins
	OnText     func(what string, read, total int64) // progress of reading
	OnProgress func(train.Event)                    // progress of training
	OnSample   func(text string)                    // takes the samples, piece by piece
}

// DemoResult is how the run ended and where it is.
type DemoResult struct {
	*run.Result
	Run, Data string // directories
}

const (
	demoSteps   = 1000 // where nothing limits
	demoPlanned = 0.9  // of the time goes into planned steps: the rest is evaluation, and the schedule reaches its end
	demoProbe   = 2    // seconds to measure the speed
)

// demoPrompts are beginnings that the standard library is full of.
var demoPrompts = []string{"// Copyright", "func (b *Buffer) Read", "// ReadFile reads"}

// Demo trains a small model on the source of the Go standard library, from text to samples: a tokenizer, a data set
// with held-out files, a run, a few continuations. What o.Out has of it already is used: a data set as it is, a run to
// be resumed. When ctx ends during training the run is saved.
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

// train resumes the run if there is one, and else makes it, with its data set unless there is one.
func (o DemoOptions) train(ctx context.Context, dir, data string) (*run.Result, error) {
	if run.Exists(dir) {
		o.OnStage(dir + " exists and is resumed; `anneal demo --out DIR` starts another")
		return run.Resume(ctx, run.Options{Dir: dir, Threads: o.Threads, OnProgress: o.OnProgress, Warn: o.OnStage})
	}
	if _, err := os.Stat(data); err != nil { // nothing is here that an earlier demo began
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
	cfg, err := o.config(ctx, data)
	if err != nil {
		return nil, err
	}
	return run.Run(ctx, run.Options{Config: cfg, Dir: dir, OnProgress: o.OnProgress, Warn: o.OnStage})
}

// config is the demo's run: a model small enough to see millions of tokens in three minutes on two cores.
func (o DemoOptions) config(ctx context.Context, data string) (*config.Config, error) {
	shape := bench.Shapes["demo"]
	c := config.Default()
	c.Seed, c.Threads, c.Data.Path, c.Model = o.Seed, o.Threads, data, shape.Model
	c.Model.Vocab = 0 // the tokenizer's
	c.Train.MicroBatch, c.Train.BatchTokens = shape.Batch, shape.Batch*c.Model.Context
	c.Train.Minutes, c.Train.Steps, c.Train.EvalEvery = o.Minutes, o.Steps, 200
	c.Optimizer.LR = 3e-3
	switch {
	case o.Steps > 0:
	case o.Minutes > 0:
		steps, err := o.stepsInTime(ctx, c.Train.BatchTokens)
		if err != nil {
			return nil, err
		}
		c.Derive("train.steps", steps, "what fits in the demo's minutes at the measured speed")
	default:
		c.Train.Steps = demoSteps
	}
	c.Resolve()
	return c, c.Validate()
}

// stepsInTime measures the speed of the demo's model, so that the learning rate reaches its end when the time does.
func (o DemoOptions) stepsInTime(ctx context.Context, batchTokens int) (int, error) {
	b, err := bench.Step(ctx, bench.Options{Shape: "demo", Precision: "bf16", Threads: o.Threads, Seconds: demoProbe})
	if err != nil {
		return 0, err
	}
	steps := int(demoPlanned * o.Minutes * 60 * b.TokensPerSecond / float64(batchTokens))
	o.OnStage(fmt.Sprintf("model: %.1fM parameters at %.0f tokens/s on %d threads (%s): %d steps fit",
		float64(b.Parameters)/1e6, b.TokensPerSecond, b.Threads, b.Tier, steps))
	return max(steps, 1), nil
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
