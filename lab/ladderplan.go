package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"anneal/bench"
	"anneal/config"
	"anneal/internal/units"
	"anneal/model"
	"anneal/plan"
	"anneal/precision"
	"anneal/run"
	"anneal/train"
)

// How a ladder is derived from its budget. All sizes read the same number of tokens, so that small sizes, which cost
// little, are well past the beginning of training, where losses follow no power law. Candidates are chains of five
// sizes, or fewer at the lower end. The chosen chain is the largest whose largest trunk can have 20 tokens per
// parameter; the lengths then fill the budget.
const (
	sizeRatio  = 1.5 // smallest ratio from one size to the next
	leastRungs = 3   // as many as a fit needs
	mostRungs  = 5   // 9 times in size
	fullRatio  = 20  // tokens per parameter of the largest trunk
	leastRatio = 8   // for the smallest budget
	spent      = 0.9 // share of the budget for steps and evaluations; the rest is for starting, saving and reserve
	unitGrain  = 5   // steps of a unit are a multiple of it, so that decays begin at whole steps
)

// ladderDims are the widths to choose sizes from.
var ladderDims = []int{
	8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 2048,
}

// decidedKeys lists the keys that a ladder sets itself.
var decidedKeys = []string{
	"model.layers", "model.dim", "model.heads", "train.steps", "train.minutes", "schedule.name", "schedule.warmup",
	"schedule.decay_fraction", "checkpoint.every", "checkpoint.keep", "train.batch_ramp", "train.batch_ramp_lr",
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

// shapeOf returns the rung of a width: a layer for 64 dimensions, at least 4; heads of 16 to 64. Models of two layers
// do not lie on one line with deeper ones (docs/scaling.md).
func shapeOf(dim int) Rung {
	return Rung{Dim: dim, Layers: max(4, dim/64), Heads: max(1, dim/min(64, max(16, dim/4)))}
}

// config returns the configuration of a run of a rung: the recipe of budgets, unless the options say otherwise. An
// unknown rate is left unset.
func (o LadderOptions) config(r Rung, units int) (*config.Config, error) {
	set := []string{
		"model.family=anneal", "optimizer.name=muon", "train.batch_tokens=4096", "train.eval_every=0",
		"train.eval_tokens=131072",
	}
	if r.Ranks > 1 {
		set = append(set, fmt.Sprintf("parallel.ranks=%d", r.Ranks), "parallel.zero=1")
	}
	set = append(append(set, o.Overrides...),
		fmt.Sprintf("model.layers=%d", r.Layers), fmt.Sprintf("model.dim=%d", r.Dim),
		fmt.Sprintf("model.heads=%d", r.Heads), fmt.Sprintf("train.steps=%d", units*r.Unit), "schedule.name=wsd",
		fmt.Sprintf("schedule.decay_fraction=%g", decayed), fmt.Sprintf("schedule.warmup=%d", r.Unit/unitGrain),
		fmt.Sprintf("checkpoint.every=%d", r.Unit-r.Unit/unitGrain),
		"checkpoint.keep=1000") // those that runs branch from, and one for every interruption
	if r.LR > 0 {
		set = append(set, fmt.Sprintf("optimizer.lr=%.4g", r.LR))
	}
	cfg, err := run.LoadConfig(config.Sources{Overrides: set, Complete: func(cfg *config.Config) error {
		muon := cfg.Optimizer.Name == "muon"
		if r.LR > 0 && muon && cfg.Origin("optimizer.adamw_lr") == (config.Origin{}) {
			cfg.DeriveText("optimizer.adamw_lr", fmt.Sprintf("%.4g", plan.TableRate*r.LR),
				fmt.Sprintf("%g · optimizer.lr", float64(plan.TableRate)))
		}
		if muon && cfg.Origin("optimizer.beta2") == (config.Origin{}) {
			cfg.DeriveText("optimizer.beta2", fmt.Sprint(plan.TableBeta2), "docs/budget.md")
		}
		if sequences := cfg.Train.BatchTokens / max(cfg.Model.Context, 1); r.Ranks > 1 &&
			cfg.Origin("train.micro_batch") == (config.Origin{}) {
			cfg.Derive("train.micro_batch", plan.MicroOf(r.Ranks, sequences, cfg.Model.Context),
				"a micro-batch for every rank")
		}
		return nil
	}})
	if err == nil && o.Threads > 0 {
		cfg.Threads = o.Threads
	}
	return cfg, err
}

// rate sets the rate of a rung whose length is known, by the rule for budgets. If a rate was given for the smallest
// rung, it is scaled by the ratio of the rule.
func (o LadderOptions) rate(r, smallest *Rung) error {
	cfg, err := o.config(*r, lengths[0])
	if err != nil {
		return err
	}
	tuned := cfg.Optimizer.Name
	if cfg.Given("optimizer.lr") || tuned != "muon" && tuned != "adamw" {
		this, _ := plan.Rate("muon", r.Dim, r.tokens(lengths[0]))
		first, _ := plan.Rate("muon", smallest.Dim, smallest.tokens(lengths[0]))
		r.LR = cfg.Optimizer.LR * (this / first) // exactly the given rate for the smallest, whose ratio is 1
		return nil
	}
	r.LR, _ = plan.Rate(tuned, r.Dim, r.tokens(lengths[0]))
	return nil
}

// plan measures sizes until they are too slow for the budget, and chooses the ladder.
func (o LadderOptions) plan(ctx context.Context) (*Ladder, error) {
	l := &Ladder{Overrides: o.Overrides, Budget: o.Budget.Seconds(), Losses: map[string]float64{}}
	r := shapeOf(ladderDims[0])
	r.Unit = unitGrain
	cfg, err := o.config(r, lengths[0])
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkBranches(cfg), l.checkData(cfg)); err != nil {
		return nil, err
	}
	ranks, err := ranksOf(cfg)
	if err != nil {
		return nil, err
	}
	var all, chosen []Rung
	var ratio, least float64
	for _, dim := range ladderDims {
		r := shapeOf(dim)
		r.Unit, r.Ranks = unitGrain, ranks
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
		if r.TokensPerSecond, err = bench.Speed(ctx, cfg); err != nil {
			return nil, err
		}
		o.OnPhase(fmt.Sprintf("measured: dim %d, %d layers, %.2fM parameters: %s tokens/s",
			r.Dim, r.Layers, r.Params/1e6, units.Commas(int64(r.TokensPerSecond))))
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
	tokens := ratio * chosen[len(chosen)-1].Params
	for _, r := range chosen {
		units := tokens / float64(lengths[0]*r.BatchTokens)
		r.Unit = max(int(math.Round(units/unitGrain)), 1) * unitGrain
		l.Rungs = append(l.Rungs, r)
	}
	if err := l.within(o.Budget); err != nil {
		return nil, err
	}
	for i := range l.Rungs {
		if err := o.rate(&l.Rungs[i], &l.Rungs[0]); err != nil {
			return nil, err
		}
	}
	o.OnPhase(l.summary())
	return l, nil
}

// within refuses a ladder of which whole units take longer than the budget, as units of large batches may.
func (l *Ladder) within(budget time.Duration) error {
	seconds := 0.0
	for _, r := range l.Rungs {
		seconds += r.Seconds()
	}
	if seconds <= budget.Seconds() {
		return nil
	}
	return config.Problem{
		Message: fmt.Sprintf("--budget %v is too small for a ladder with train.batch_tokens = %d: its "+
			"shortest runs of %d steps, and longer ones, take %v here", budget, l.Rungs[0].BatchTokens, unitGrain,
			time.Duration(math.Ceil(seconds))*time.Second),
		Try: "more time, or a smaller train.batch_tokens",
	}
}

// summary describes the number of sizes of a ladder and their tokens.
func (l *Ladder) summary() string {
	largest := l.Rungs[len(l.Rungs)-1]
	least, most := largest.tokens(1), largest.tokens(lengths[0])
	return fmt.Sprintf("ladder: %d sizes, each with %.3gM to %.3gM tokens; the largest has %.3g per parameter",
		len(l.Rungs), least/1e6, most/1e6, most/largest.Params)
}

// costs returns the seconds of a ladder's evaluations, and the seconds of its steps per token per parameter of the
// largest size.
func costs(rungs []Rung, evalTokens int) (fixed, each float64) {
	const forward = 1.0 / 3 // share of the cost of a training token
	largest := rungs[len(rungs)-1].Params
	for _, r := range rungs {
		fixed += float64(len(lengths)*evalTokens) * forward / r.TokensPerSecond
		each += trunkCost * largest / r.TokensPerSecond
	}
	return fixed, each
}

// describe fills in the fields of a rung from a configuration.
func (r *Rung) describe(cfg *config.Config) error {
	f, err := plan.Outline(cfg)
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

// ranksOf returns the number of ranks that the threads form in every run.
func ranksOf(cfg *config.Config) (int, error) {
	if cfg.Parallel.Ranks > 1 {
		return cfg.Parallel.Ranks, nil
	}
	dev, err := train.OpenDevice(cfg, "", 0)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	return plan.RanksOf(dev.Threads(), cfg.Train.BatchTokens/cfg.Model.Context), nil
}
