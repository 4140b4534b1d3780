package lab

import (
	"context"
	"math"
	"time"

	"anneal/bench"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/machine"
	"anneal/plan"
)

// NewBudget returns a Budget for a run on the data of a configuration, with the speeds of models on dev. memory is the
// limit for the run; 0 means all memory of the machine.
func NewBudget(ctx context.Context, within time.Duration, data *config.Config, dev device.Properties, memory int64) (
	plan.Budget, error) {
	text, err := textOf(data)
	if err != nil {
		return plan.Budget{}, err
	}
	return plan.Budget{
		Time: within, Threads: dev.Threads(), Speed: speedOn(ctx, dev, min(within/20, warming)), Data: text,
		Plan: func(cfg *config.Config) (*plan.Plan, error) {
			p, err := plan.For(cfg, dev)
			if err == nil && memory > 0 {
				p.Available, p.Fits = memory, p.Bytes() <= memory
			}
			return p, err
		},
	}, nil
}

// textOf measures the text of a run. Several sources with shares w of the tokens read and T tokens each count as one
// text of 1/Σ(w²/T) tokens. This is their total if shares are proportional to size, and less if a small source is read
// more often than the others.
func textOf(cfg *config.Config) (plan.Text, error) {
	sources, err := cfg.Sources()
	if err != nil {
		return plan.Text{}, err
	}
	var sets []*dataset.Dataset
	defer func() {
		for _, d := range sets {
			d.Close()
		}
	}()
	rows, length := make([]uint64, len(sources)), max(cfg.Model.Context, 1) // 0 is refused with its key, later
	for i, s := range sources {
		d, err := dataset.Open(s.Path)
		if err != nil {
			return plan.Text{}, err
		}
		sets = append(sets, d)
		// Training would refuse too short a text, but only after the speeds are measured.
		l, err := d.PackedLoader(dataset.Packing(cfg.Data.Packing), length, cfg.Seed)
		if err != nil {
			return plan.Text{}, err
		}
		rows[i] = l.Windows()
	}
	if err := dataset.SameTokenizer(sets); err != nil {
		return plan.Text{}, err
	}
	mix, err := cfg.Mix(rows)
	if err != nil {
		return plan.Text{}, err
	}
	shares := dataset.Normalised(mix.Expected(uint64(cfg.Train.Steps * cfg.Train.BatchTokens / length)))
	repeated, bytes, all := 0.0, 0.0, uint64(0) // repeated and bytes are those of a token
	for i, d := range sets {
		m := d.Manifest.Train
		tokens := float64(m.Tokens) // a loader needs at least two
		repeated += shares[i] * shares[i] / tokens
		bytes += shares[i] * float64(m.TextBytes) / tokens
		if shares[i] > 0 {
			all += m.Tokens
		}
	}
	return plan.Text{
		Tokens: int64(math.Round(1 / repeated)), Bytes: int64(math.Round(bytes / repeated)),
		All: int64(all), Vocab: sets[0].Manifest.Tokenizer.VocabSize,
	}, nil
}

// warming is how long an idle CPU may take to reach its speed. On one machine, four steps of a model of width 32 were
// measured at 27,700 tokens/s, but a run reached 36,000.
const warming = 2 * time.Second

// speedOn returns a function for the speed of configurations: the lower of the measured speed and the prediction of
// the machine's profile, if there is one. A busy machine is slower than its profile. The measurement of the first
// configuration is repeated for the time of warming.
func speedOn(ctx context.Context, dev device.Properties, warming time.Duration) func(*config.Config) (float64, string,
	error) {
	profile, missing := machine.Load(machine.KeyOf(dev))
	var begun time.Time
	return func(cfg *config.Config) (float64, string, error) {
		if begun.IsZero() {
			begun = time.Now()
		}
		speed, err := bench.Speed(ctx, cfg)
		for err == nil && time.Since(begun) < warming {
			speed, err = bench.Speed(ctx, cfg)
		}
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
