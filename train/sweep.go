package train

import (
	"context"

	"anneal/schedule"
	"anneal/train/config"
)

// SweepOptions says over which learning rates a configuration is trained for a range test.
type SweepOptions struct {
	Config    *config.Config // valid; full batches of full sequences are read, whatever its ramps; Adafactor's relative step does not cap the rates
	Threads   int            // overrides Config.Threads if above 0
	Low, High float64        // the rates of the first step and of the last, 0 < Low < High
	Steps     int            // at least 2

	OnStep func(lr, loss float64) (goOn bool) // the loss in nats per token, before the update at rate lr
}

// Sweep trains from the initial weights while the learning rate rises exponentially, until the last step, a loss that is not
// finite, or OnStep says so. It works in memory of its own and writes nothing: a run, its data and o.Config stay as they are.
func Sweep(ctx context.Context, o SweepOptions) error {
	cfg := o.Config.Clone()
	plain := config.Default()
	cfg.Train.BatchRamp, cfg.Train.BatchRampLR, cfg.Train.LengthWarmup, cfg.Train.NoiseScaleEvery = "", plain.Train.BatchRampLR, "", 0
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
	t.trainer.sched = schedule.Sweep{Low: o.Low / peak, High: o.High / peak, Steps: o.Steps}
	for range o.Steps {
		stats, err := t.Step(ctx)
		if err != nil {
			return err
		}
		if !o.OnStep(stats.LR, stats.Loss) || !finite(stats.Loss) {
			break
		}
	}
	return nil
}
