package lab

import (
	"context"
	"time"

	"anneal/bench"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/machine"
	"anneal/plan"
)

// NewBudget returns what derives a run on the data set in dir from the time for it, with the speeds of models on dev.
// memory is what the run may take, 0 for what the machine has.
func NewBudget(ctx context.Context, within time.Duration, dir string, dev device.Properties, memory int64) (
	plan.Budget, error) {
	d, err := dataset.Open(dir)
	if err != nil {
		return plan.Budget{}, err
	}
	defer d.Close()
	m := d.Manifest
	return plan.Budget{
		Time: within, Threads: dev.Threads(), Speed: speedOn(ctx, dev),
		Data: plan.Text{
			Tokens: int64(m.Train.Tokens), Bytes: int64(m.Train.TextBytes), Vocab: m.Tokenizer.VocabSize,
		},
		Plan: func(cfg *config.Config) (*plan.Plan, error) {
			p, err := plan.For(cfg, dev)
			if err == nil && memory > 0 {
				p.Available, p.Fits = memory, p.Bytes() <= memory
			}
			return p, err
		},
	}, nil
}

// speedOn returns how fast configurations train: the slower of what is measured now and what the profile of the machine
// predicts, if it has one. A machine that is busy is slower than its profile.
func speedOn(ctx context.Context, dev device.Properties) func(*config.Config) (float64, string, error) {
	profile, missing := machine.Load(machine.KeyOf(dev))
	return func(cfg *config.Config) (float64, string, error) {
		speed, err := bench.Speed(ctx, cfg)
		if err != nil || missing != nil || cfg.Device != "cpu" {
			return speed, "measured", err
		}
		t, err := plan.TimeOf(cfg, dev, profile, nil)
		if err != nil || speed <= t.TokensPerSecond {
			return speed, "measured", nil
		}
		return t.TokensPerSecond, "predicted from `anneal bench machine`", nil
	}
}
