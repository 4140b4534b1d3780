package study

import (
	"context"
	"fmt"
	"strings"

	"anneal/chart"
	"anneal/config"
	"anneal/dataset"
	"anneal/lab"
	"anneal/prepare/synth"
	"anneal/run"
)

// A Drift is a model of code that continues training on prose. All figures are bits per byte of held-out text.
type Drift struct {
	Replay float64    `json:"replay"`
	Before float64    `json:"code_before"`
	After  float64    `json:"code_after"`
	Prose  [2]float64 `json:"prose_before_and_after"`
	Step   []float64  `json:"step"` // on prose
	Code   []float64  `json:"code"` // after these steps
}

const (
	driftText  = 4 << 20 // bytes of code, and of prose
	driftLooks = 5
)

var driftReplays = []float64{0, 0.05, 0.25}

// drift trains a model on the code of the Go standard library, and then on its prose with some code among it, for as
// many steps each (continued pre-training: Ibrahim et al. 2024, arXiv 2403.08763).
func drift(ctx context.Context, d *Dir, o ForgettingOptions) ([]Drift, error) {
	if err := buildGoTexts(ctx, d); err != nil {
		return nil, err
	}
	cfg, err := driftConfig(o, "data.path="+d.File("code"))
	if err != nil {
		return nil, err
	}
	if _, err := d.Train(ctx, "coder", cfg); err != nil {
		return nil, err
	}
	var before [2]float64
	for i, text := range []string{"code", "prose"} {
		if before[i], err = bitsOf(ctx, d.File("coder"), 0, d.File(text)); err != nil {
			return nil, err
		}
	}
	list := make([]Drift, len(driftReplays))
	err = lab.Together(ctx, len(list), 0, func(ctx context.Context, i int) error {
		list[i] = Drift{Replay: driftReplays[i], Before: before[0], Prose: [2]float64{before[1]}}
		return list[i].learn(ctx, d, o)
	})
	return list, err
}

// buildGoTexts makes the data sets of code and prose, unless they exist.
func buildGoTexts(ctx context.Context, d *Dir) error {
	if dataset.Exists(d.File("code")) && dataset.Exists(d.File("prose")) {
		return nil
	}
	code, prose, err := goTexts(driftText)
	if err != nil {
		return err
	}
	for name, text := range map[string]synth.Text{"code": code, "prose": prose} {
		if dataset.Exists(d.File(name)) {
			continue
		}
		if _, err := text.Build(ctx, d.File(name), false); err != nil {
			return err
		}
	}
	return nil
}

// driftConfig returns the configuration of a model of two layers that reads bytes, 4,096 per step.
func driftConfig(o ForgettingOptions, overrides ...string) (*config.Config, error) {
	return run.LoadConfig(config.Sources{Overrides: append([]string{
		fmt.Sprintf("seed=%d", o.Seed), "precision=fp32", "threads=1", "model.layers=2", "model.dim=64",
		"model.heads=4", "model.context=128", "optimizer.lr=4e-3", fmt.Sprintf("train.steps=%d", o.TextSteps),
		fmt.Sprintf("schedule.warmup=%d", max(o.TextSteps/50, 1)), "train.batch_tokens=4096", "train.micro_batch=32",
		"train.eval_every=0", fmt.Sprintf("checkpoint.every=%d", max(o.TextSteps/driftLooks, 1)),
		fmt.Sprintf("checkpoint.keep=%d", 2*driftLooks),
	}, overrides...)})
}

// learn trains on prose, starting from the weights of the model of code, and measures the loss of code.
func (f *Drift) learn(ctx context.Context, d *Dir, o ForgettingOptions) error {
	name := fmt.Sprintf("prose-%g", 100*f.Replay)
	data := []string{"data.path=" + d.File("prose")}
	if f.Replay > 0 {
		data = mixed(d.File("prose"), d.File("code"), f.Replay)
	}
	cfg, err := driftConfig(o, append(data, "init.from="+d.File("coder"))...)
	if err != nil {
		return err
	}
	if _, err := d.Train(ctx, name, cfg); err != nil {
		return err
	}
	every := max(o.TextSteps/driftLooks, 1)
	for step := every; step <= o.TextSteps; step += every {
		if f.After, err = bitsOf(ctx, d.File(name), step, d.File("code")); err != nil {
			return err
		}
		f.Step, f.Code = append(f.Step, float64(step)), append(f.Code, f.After)
	}
	f.Prose[1], err = bitsOf(ctx, d.File(name), 0, d.File("prose"))
	return err
}

// bitsOf returns the loss on held-out text of a data set, in bits per byte, of a run's model at a step or with its
// newest weights.
func bitsOf(ctx context.Context, dir string, step int, data string) (float64, error) {
	const tokens = 64 << 10
	e, err := evaluated(ctx, dir, step, data, tokens)
	return e.BitsPerByte, err
}

// driftSeen describes how the loss of code changed.
func driftSeen(list []Drift) string {
	var s strings.Builder
	none := list[0]
	fmt.Fprintf(&s, "On real text: a model of Go code has %.3f bits per byte of code and %.3f of prose. After as many "+
		"steps on prose alone it has %.3f and %.3f.", none.Before, none.Prose[0], none.After, none.Prose[1])
	for _, f := range list[1:] {
		fmt.Fprintf(&s, " With %g %% of code among the prose it has %.3f and %.3f.", 100*f.Replay, f.After, f.Prose[1])
	}
	for _, f := range list[1:] {
		if lost := none.After - none.Before; lost > 0 && f.After-f.Before <= lost/4 {
			fmt.Fprintf(&s, " So %g %% of old text are enough here to lose less than a quarter of what is lost "+
				"without, for %.3f bits per byte of the new text.", 100*f.Replay, f.Prose[1]-none.Prose[1])
			break
		}
	}
	return s.String()
}

// driftChart draws the loss of code while prose is learnt.
func driftChart(list []Drift) *chart.Chart {
	c := &chart.Chart{
		Title: "A model of code, while it learns prose",
		X:     chart.Axis{Label: "step on prose"},
		Y:     chart.Axis{Label: "bits per byte of code"},
	}
	for _, f := range list {
		c.Series = append(c.Series, chart.Series{
			Name: fmt.Sprintf("%g %% replayed", 100*f.Replay), X: append([]float64{0}, f.Step...),
			Y: append([]float64{f.Before}, f.Code...), Style: chart.Both,
		})
	}
	return c
}
