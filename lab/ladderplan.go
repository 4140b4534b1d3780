package lab

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"anneal/config"
	"anneal/model"
	"anneal/plan"
	"anneal/precision"
	"anneal/run"
)

// How a ladder follows from its budget: sizes are about twice the last one. Of each chain of five sizes, or of fewer at
// its lower end, the largest is taken whose trunks can have 40 tokens per parameter; the lengths then fill the budget.
const (
	sizeRatio    = 1.8 // at least, from one size to the next
	leastRungs   = 3   // as many as a fit needs
	mostRungs    = 5   // 16 times in size
	fullRatio    = 40  // tokens per parameter of a trunk; its branches have 5, 10 and 20
	leastRatio   = 8   // for the smallest budget
	spent        = 0.9 // of the budget goes into steps and evaluations; the rest is starting, saving and surprise
	unitGrain    = 5   // steps of a unit are a multiple of it, so that decays begin at whole steps
	probeSeconds = 0.5
)

// ladderDims are the widths to choose sizes from.
var ladderDims = []int{
	8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 2048,
}

// decidedKeys are those that a ladder sets by itself.
var decidedKeys = []string{
	"model.layers", "model.dim", "model.heads", "train.steps", "train.minutes", "schedule.name", "schedule.warmup",
	"schedule.decay_fraction", "checkpoint.every", "checkpoint.keep",
}

func (o LadderOptions) checkOverrides() error {
	for _, text := range o.Overrides {
		for _, key := range decidedKeys {
			if strings.HasPrefix(text, key+"=") {
				return config.Problem{
					Key: key, At: "command line: " + text,
					Message: key + " differs from run to run of a ladder, which sets it from the budget",
					Try:     "leaving it out",
				}
			}
		}
	}
	return nil
}

// shapeOf returns the rung of a width: a layer for 32 dimensions up to 4 layers, then for 64; heads of 16 to 64. The
// learning rate falls with the square root of the width.
func shapeOf(dim int) Rung {
	const base, rate = 128, 3e-3
	return Rung{
		Dim: dim, Layers: max(2, min(dim/32, 4), dim/64), Heads: max(1, dim/min(64, max(16, dim/4))),
		LR: rate * math.Sqrt(base/float64(dim)),
	}
}

// config returns the configuration of a run of a rung.
func (o LadderOptions) config(r Rung, units int) (*config.Config, error) {
	first := []string{
		"train.batch_tokens=4096", "train.eval_every=0", "train.eval_tokens=131072",
		fmt.Sprintf("optimizer.lr=%.4g", r.LR),
	}
	last := []string{
		fmt.Sprintf("model.layers=%d", r.Layers), fmt.Sprintf("model.dim=%d", r.Dim),
		fmt.Sprintf("model.heads=%d", r.Heads), fmt.Sprintf("train.steps=%d", units*r.Unit), "schedule.name=wsd",
		fmt.Sprintf("schedule.decay_fraction=%g", decayed), fmt.Sprintf("schedule.warmup=%d", r.Unit/unitGrain),
		fmt.Sprintf("checkpoint.every=%d", r.Unit-r.Unit/unitGrain),
		fmt.Sprintf("checkpoint.keep=%d", 2+int(float64(lengths[0])/(1-decayed))),
	}
	cfg, err := run.LoadConfig(config.Sources{Overrides: append(append(first, o.Overrides...), last...)})
	if err == nil && o.Threads > 0 {
		cfg.Threads = o.Threads
	}
	return cfg, err
}

// plan measures sizes until they are too slow for the budget, and chooses the ladder.
func (o LadderOptions) plan(ctx context.Context) (*Ladder, error) {
	var all, chosen []Rung
	var ratio, least float64
	for _, dim := range ladderDims {
		r := shapeOf(dim)
		r.Unit = unitGrain
		cfg, err := o.config(r, lengths[0])
		if err != nil {
			return nil, err
		}
		if err := r.describe(cfg); err != nil {
			return nil, err
		}
		if n := len(all); n > 0 && r.Params < sizeRatio*all[n-1].Params {
			continue
		}
		if r.TokensPerSecond, err = o.speed(ctx, cfg); err != nil {
			return nil, err
		}
		o.OnPhase(fmt.Sprintf("measured: dim %d, %d layers, %.2fM parameters: %.0f tokens/s",
			r.Dim, r.Layers, r.Params/1e6, r.TokensPerSecond))
		if all = append(all, r); len(all) < leastRungs {
			continue
		}
		chain := all[max(0, len(all)-mostRungs):]
		fixed, each := costs(chain, cfg.Train.EvalTokens)
		fits := (spent*o.Budget.Seconds() - fixed) / each
		if chosen == nil {
			least = (fixed + leastRatio*each) / spent
		}
		if chosen != nil && fits < fullRatio {
			break
		}
		if chosen, ratio = chain, fits; fits < fullRatio {
			break
		}
	}
	if ratio < leastRatio {
		return nil, config.Problem{
			Message: fmt.Sprintf("--budget %v is too small for a ladder: %d sizes with %d tokens per parameter take "+
				"%v here", o.Budget, leastRungs, leastRatio, time.Duration(math.Ceil(least))*time.Second),
			Try: "more time, a tokenizer with a smaller vocabulary, or a smaller train.eval_tokens",
		}
	}
	l := &Ladder{Overrides: o.Overrides, Budget: o.Budget.Seconds(), Losses: map[string]float64{}}
	for _, r := range chosen {
		units := ratio * r.Params / float64(lengths[0]*r.BatchTokens)
		r.Unit = max(int(math.Round(units/unitGrain)), 1) * unitGrain
		l.Rungs = append(l.Rungs, r)
	}
	o.OnPhase(fmt.Sprintf("ladder: %d sizes, each with %.3g to %.3g tokens per parameter",
		len(l.Rungs), ratio/float64(lengths[0]), ratio))
	return l, nil
}

// costs returns the seconds of a ladder's evaluations, and those of its steps for each token per parameter.
func costs(rungs []Rung, evalTokens int) (fixed, each float64) {
	const forward = 1.0 / 3 // of what a training token costs
	for _, r := range rungs {
		fixed += float64(len(lengths)*evalTokens) * forward / r.TokensPerSecond
		each += trunkCost * r.Params / r.TokensPerSecond
	}
	return fixed, each
}

// describe fills in what a configuration says of a rung.
func (r *Rung) describe(cfg *config.Config) error {
	f, err := plan.Foresee(cfg)
	if err != nil {
		return err
	}
	policy, err := precision.Lookup(cfg.Precision)
	if err != nil {
		return err
	}
	r.Params = model.Outline(cfg.Model, policy).FLOPsPerToken(0) / 6
	r.FLOPsPerToken, r.BatchTokens = f.FLOPsPerToken, cfg.Train.BatchTokens
	r.Unique = math.Round(float64(f.Tokens) / f.Epochs)
	return nil
}

// speed trains for a moment and returns tokens per second.
func (o LadderOptions) speed(ctx context.Context, cfg *config.Config) (float64, error) {
	t, err := run.NewTrial(cfg, nil, nil)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	if _, err := t.Step(ctx); err != nil {
		return 0, err
	}
	start, steps := time.Now(), 0
	for time.Since(start).Seconds() < probeSeconds {
		if _, err := t.Step(ctx); err != nil {
			return 0, err
		}
		steps++
	}
	return float64(steps*cfg.Train.BatchTokens) / time.Since(start).Seconds(), nil
}
