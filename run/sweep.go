package run

import (
	"context"
	"errors"
	"fmt"
	"math"

	"anneal/config"
	"anneal/schedule"
)

// SweepOptions defines the learning rates of a range test.
type SweepOptions struct {
	// must be valid; Sweep uses full batches of full sequences without ramps, and Adafactor's relative step does not
	// cap the rates
	Config    *config.Config
	Threads   int     // overrides Config.Threads if above 0
	Low, High float64 // the rates of the first and the last step, 0 < Low < High
	Steps     int     // at least 2

	// loss in nats per token, before the update at rate lr; returns false to stop. It is the only result of a sweep
	OnStep func(lr, loss float64) (goOn bool)
}

// check returns an error that names an invalid option.
func (o SweepOptions) check() error {
	switch {
	case o.Config == nil:
		return errNoConfig
	case o.OnStep == nil:
		return errors.New("a sweep without OnStep has no result\n  set OnStep to a function that takes the losses")
	case !(0 < o.Low && o.Low < o.High) || math.IsInf(o.High, 1):
		return fmt.Errorf("a sweep cannot go from the learning rate %v to %v\n  try Low: 1e-6, High: 1", o.Low, o.High)
	case o.Steps < 2:
		return fmt.Errorf("a sweep of %d steps has no two learning rates\n  try Steps: 100", o.Steps)
	}
	return nil
}

// Sweep trains from the initial weights while the learning rate rises exponentially, until the last step, a
// non-finite loss, or OnStep returns false. It works in memory and writes nothing: runs, data and o.Config do not
// change.
func Sweep(ctx context.Context, o SweepOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	cfg := o.Config.Clone()
	plain := config.Default()
	cfg.Train.BatchRamp, cfg.Train.BatchRampLR = plain.Train.BatchRamp, plain.Train.BatchRampLR
	cfg.Train.LengthWarmup, cfg.Train.NoiseScaleEvery = plain.Train.LengthWarmup, 0
	cfg.Guard.SpikeZ, cfg.Guard.Window = 0, plain.Guard.Window
	if cfg.Optimizer.Name == "adafactor" {
		cfg.Optimizer.RelativeStep = false // it would cap the rates
	}
	if o.Threads > 0 {
		cfg.Threads = o.Threads
	}
	t, err := NewTrial(cfg, nil, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	peak := cfg.Optimizer.LR
	t.trainer.SetSchedule(schedule.Sweep{Low: o.Low / peak, High: o.High / peak, Steps: o.Steps})
	for range o.Steps {
		stats, err := t.Step(ctx)
		if err != nil {
			return err
		}
		if !o.OnStep(stats.LR, stats.Loss) || math.IsNaN(stats.Loss) || math.IsInf(stats.Loss, 0) {
			break
		}
	}
	return nil
}
