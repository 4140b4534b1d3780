package study

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"anneal/chart"
	"anneal/config"
	"anneal/dataset"
	"anneal/lab"
	"anneal/prepare/synth"
	"anneal/run"
	"anneal/train"
	"anneal/use"
)

// ForgettingOptions are the options of Forget.
type ForgettingOptions struct {
	Seed  int `json:"seed"`
	Steps int `json:"steps"` // of each task

	TextSteps int `json:"text_steps"` // steps on code, and on prose; 0 means no real text
}

// forgetLooks is how often a model is measured while it learns the second task.
const forgetLooks = 10

// A remedy against forgetting.
type remedy struct {
	replay float64 // share of the first task that is mixed into the second
	ewc    float64 // strength of elastic weight consolidation
	early  bool    // importance of weights after a tenth of the first task, instead of at its end
}

// remedies begins with no remedy. Elastic weight consolidation is tried at the largest strength with which the second
// task is still learnt, and also with the importance from the end of the first task, where gradients have vanished.
var remedies = []remedy{
	{}, {replay: 0.01}, {replay: 0.05}, {replay: 0.25}, {ewc: 1000, early: true}, {ewc: 1000},
	{replay: 0.01, ewc: 1000, early: true},
}

// String names the remedy.
func (r remedy) String() string {
	var parts []string
	if r.replay > 0 || r.ewc == 0 {
		parts = append(parts, fmt.Sprintf("%g %% replayed", 100*r.replay))
	}
	switch {
	case r.ewc > 0 && r.early:
		parts = append(parts, "EWC")
	case r.ewc > 0:
		parts = append(parts, "EWC of the end")
	}
	return strings.Join(parts, ", ")
}

// A Forgetting is a model that learnt additions and then subtractions. All shares are shares of held-out examples that
// are right as a whole.
type Forgetting struct {
	Remedy string    `json:"remedy"`
	Replay float64   `json:"replay"`
	EWC    float64   `json:"ewc"`
	Before float64   `json:"first_task_before"`
	After  float64   `json:"first_task_after"`
	Second float64   `json:"second_task_after"`
	Step   []float64 `json:"step"`       // of the second task
	First  []float64 `json:"first_task"` // after these steps

	by remedy
}

// Forgettings holds the results of the models of two tasks, and of those of two texts.
type Forgettings struct {
	Tasks []Forgetting `json:"tasks"`
	Texts []Drift      `json:"texts,omitempty"`
}

// Forgotten returns the loss of accuracy on the first task.
func (f Forgetting) Forgotten() float64 { return f.Before - f.After }

// Forget trains a model on additions, and then on subtractions with some of the additions replayed (catastrophic
// forgetting: McCloskey and Cohen 1989; replay: Robins 1995). Then it does so with the code and the prose of the Go
// standard library.
func Forget(ctx context.Context, d *Dir, o ForgettingOptions) (*Report, *Forgettings, error) {
	for _, name := range []string{"addition", "subtraction"} {
		if err := forgetText(ctx, d.File(name), name == "subtraction"); err != nil {
			return nil, nil, err
		}
	}
	cfg, err := forgetConfig(d, o, "data.path="+d.File("addition"))
	if err != nil {
		return nil, nil, err
	}
	if _, err := d.Train(ctx, "first", cfg); err != nil {
		return nil, nil, err
	}
	before, err := exact(ctx, d.File("first"), 0, d.File("addition"))
	if err != nil {
		return nil, nil, err
	}
	found := &Forgettings{Tasks: make([]Forgetting, len(remedies))}
	list := found.Tasks
	err = lab.Together(ctx, len(list), 0, func(ctx context.Context, i int) error {
		r := remedies[i]
		list[i] = Forgetting{Remedy: r.String(), Replay: r.replay, EWC: r.ewc, Before: before, by: r}
		return list[i].learn(ctx, d, o)
	})
	if err != nil {
		return nil, nil, err
	}
	r := &Report{
		Study: "forgetting", Seen: forgettingSeen(list), Figures: map[string]any{"models": found},
		Charts: []*chart.Chart{forgettingChart(list)},
	}
	for _, f := range list {
		r.Headlines = append(r.Headlines, share("additions left, "+f.Remedy, f.After))
		if f.EWC > 0 {
			r.Headlines = append(r.Headlines, share("subtractions learnt, "+f.Remedy, f.Second))
		}
	}
	if o.TextSteps > 0 {
		if found.Texts, err = drift(ctx, d, o); err != nil {
			return nil, nil, err
		}
		r.Seen += " " + driftSeen(found.Texts)
		r.Charts = append(r.Charts, driftChart(found.Texts))
		for _, f := range found.Texts {
			name := fmt.Sprintf("code, per byte, after comments with %g %% of it", 100*f.Replay)
			r.Headlines = append(r.Headlines, Headline{name, f.After, "bits"})
		}
	}
	return r, found, d.Write(r)
}

// mixed returns the configuration of data with a share of old data among the new.
func mixed(second, first string, replay float64) []string {
	return []string{
		fmt.Sprintf("data.mix=second=%s,first=%s", second, first),
		fmt.Sprintf("data.weights=second=%g first=%g", 1-replay, replay),
	}
}

// forgetText makes sums or differences modulo 1,000, unless they exist.
func forgetText(ctx context.Context, dir string, subtract bool) error {
	if dataset.Exists(dir) {
		return nil
	}
	t, err := synth.Addition{Digits: 3, Modulo: true, Subtract: subtract, Train: 100_000, Val: 1000, Seed: 1}.Text()
	if err == nil {
		_, err = t.Build(ctx, dir, false)
	}
	return err
}

// forgetConfig returns the configuration of a model of two layers, trained on batches of 128 examples of 12 tokens.
func forgetConfig(d *Dir, o ForgettingOptions, data ...string) (*config.Config, error) {
	const batch, document = 128, 12
	return run.LoadConfig(config.Sources{Overrides: append([]string{
		"data.packing=pad", fmt.Sprintf("seed=%d", o.Seed), "precision=fp32", "model.layers=2", "model.dim=64",
		"model.heads=4", "model.positions=learned", "model.tie_embeddings=false", "model.init_std=0.125",
		fmt.Sprintf("model.context=%d", document), "optimizer.lr=2e-3", "optimizer.beta2=0.98",
		"optimizer.weight_decay=0", fmt.Sprintf("train.steps=%d", o.Steps),
		fmt.Sprintf("schedule.warmup=%d", max(o.Steps/50, 1)), fmt.Sprintf("train.batch_tokens=%d", batch*document),
		fmt.Sprintf("train.micro_batch=%d", batch), "train.eval_every=0",
		fmt.Sprintf("checkpoint.every=%d", max(o.Steps/forgetLooks, 1)),
		fmt.Sprintf("checkpoint.keep=%d", 2*forgetLooks),
	}, data...)})
}

// learn trains the second task after the first, and measures the first task.
func (f *Forgetting) learn(ctx context.Context, d *Dir, o ForgettingOptions) error {
	name := strings.ReplaceAll(strings.ReplaceAll(f.Remedy, " %", ""), " ", "-")
	data := []string{"data.path=" + d.File("subtraction")}
	if f.Replay > 0 {
		data = mixed(d.File("subtraction"), d.File("addition"), f.Replay)
	}
	every := max(o.Steps/forgetLooks, 1)
	data = append(data, "init.from="+d.File("first"))
	if f.EWC > 0 {
		data = append(data, fmt.Sprintf("init.ewc=%g", f.EWC))
	}
	if f.by.early {
		data = append(data, fmt.Sprintf("init.ewc_step=%d", every))
	}
	cfg, err := forgetConfig(d, o, data...)
	if err != nil {
		return err
	}
	if _, err := d.Train(ctx, name, cfg); err != nil {
		return err
	}
	for step := every; step <= o.Steps; step += every {
		share, err := exact(ctx, d.File(name), step, d.File("addition"))
		if err != nil {
			return err
		}
		f.Step, f.First, f.After = append(f.Step, float64(step)), append(f.First, share), share
	}
	f.Second, err = exact(ctx, d.File(name), 0, d.File("subtraction"))
	return err
}

// exact returns the share of held-out examples of a data set that a run's model gets right as a whole, at a step or
// with its newest weights.
func exact(ctx context.Context, dir string, step int, data string) (float64, error) {
	e, err := evaluated(ctx, dir, step, data, 0)
	return e.Answers.ExactMatch(), err
}

// evaluated evaluates a run's model, at a step or with its newest weights, on a number of held-out tokens of a data
// set; 0 means all.
func evaluated(ctx context.Context, dir string, step int, data string, tokens int) (train.EvalResult, error) {
	r, err := use.OpenWith(dir, use.OpenOptions{Threads: 1, WeightOptions: run.WeightOptions{Step: int64(step)}})
	if err != nil {
		return train.EvalResult{}, err
	}
	defer r.Close()
	return r.Evaluate(ctx, data, tokens, nil)
}

// forgettingSeen describes how accuracy on the first task changed.
func forgettingSeen(list []Forgetting) string {
	var s strings.Builder
	none := list[0]
	fmt.Fprintf(&s,
		"The model had %.1f %% of the additions right. After it had learnt subtractions (%.1f %%) alone, %.1f %% "+
			"were left", 100*none.Before, 100*none.Second, 100*none.After)
	if len(none.First) > 1 {
		fmt.Fprintf(&s, ", and %.1f %% already after a tenth of the steps", 100*none.First[0])
	}
	s.WriteString(".")
	for _, f := range list[1:] {
		fmt.Fprintf(&s, " %s: %.1f %% (subtractions %.1f %%).", f.Remedy, 100*f.After, 100*f.Second)
	}
	enough := slices.IndexFunc(list, func(f Forgetting) bool {
		return f.EWC == 0 && f.Before > 0 && f.After >= 0.9*f.Before
	})
	if enough > 0 {
		fmt.Fprintf(&s, " So %g %% of old examples are enough here to keep nine tenths.", 100*list[enough].Replay)
	}
	held := slices.ContainsFunc(list, func(f Forgetting) bool {
		return f.EWC > 0 && f.Replay == 0 && f.Second >= 0.9 && f.After >= 0.1
	})
	if alone := list[len(list)-1]; alone.EWC > 0 && !held {
		s.WriteString(" EWC alone keeps nothing here while the second task is learnt.")
	}
	return s.String()
}

// forgettingChart draws accuracy on the first task while the second is learnt, with one remedy at a time.
func forgettingChart(list []Forgetting) *chart.Chart {
	c := &chart.Chart{
		Title: "Additions, while subtractions are learnt",
		X:     chart.Axis{Label: "step of the second task"},
		Y:     chart.Axis{Label: "share of right additions", Max: 1},
	}
	for _, f := range list {
		if f.EWC > 0 && (f.Replay > 0 || !f.by.early) {
			continue
		}
		c.Series = append(c.Series, chart.Series{
			Name: f.Remedy, X: append([]float64{0}, f.Step...),
			Y: append([]float64{f.Before}, f.First...), Style: chart.Both,
		})
	}
	return c
}
