package study

import (
	"context"
	"fmt"
	"math"
	"strings"

	"anneal/chart"
	"anneal/config"
	"anneal/dataset"
	"anneal/lab"
	"anneal/prepare/synth"
	"anneal/run"
)

// EmergenceOptions are the options of Emerge.
type EmergenceOptions struct {
	Seed  int `json:"seed"`
	Steps int `json:"steps"` // for facts; additions take 1.6 times as many
}

// A capacityTask is a task that models of several widths learn.
type capacityTask struct {
	name    string
	widths  []int
	answer  int // tokens of an answer
	context int // tokens of a document
	longer  float64
	heldOut bool // measured on held-out documents, else on training documents
	text    func() (synth.Text, error)
}

var capacityTasks = []capacityTask{
	{"facts", []int{4, 8, 12, 16, 20, 24, 32}, synth.FactDigits, 10, 1, false, synth.Facts{Facts: 1024, Seed: 1}.Text},
	{"addition", []int{6, 8, 10, 12, 16}, 5, 16, 1.6, true,
		synth.Addition{Digits: 4, Train: 50_000, Val: 1000, Seed: 1}.Text},
}

// A Capacity holds the results of a model of a width.
type Capacity struct {
	Task       string  `json:"task"`
	Width      int     `json:"width"`
	Parameters int64   `json:"parameters"`
	Accuracy   float64 `json:"token_accuracy"`
	Exact      float64 `json:"exact_match"`
	Predicted  float64 `json:"predicted_exact_match"` // if errors were independent: accuracy to the power of the length
}

// Emerge trains models of several widths on random facts and on additions, and compares a smooth measure with a sharp
// one (Schaeffer et al. 2023, arXiv 2304.15004): the share of right tokens, and that of answers right as a whole.
func Emerge(ctx context.Context, d *Dir, o EmergenceOptions) (*Report, []Capacity, error) {
	type job struct {
		*capacityTask
		width int
	}
	var jobs []job
	for i := range capacityTasks {
		t := &capacityTasks[i]
		if err := t.build(ctx, d.File(t.name)); err != nil {
			return nil, nil, err
		}
		for _, w := range t.widths {
			jobs = append(jobs, job{t, w})
		}
	}
	list := make([]Capacity, len(jobs))
	err := lab.Together(ctx, len(jobs), 0, func(ctx context.Context, i int) error {
		t := jobs[i]
		cfg, err := t.config(d.File(t.name), t.width, o)
		if err != nil {
			return err
		}
		r, err := d.Train(ctx, fmt.Sprintf("%s-%d", t.name, t.width), cfg)
		if err != nil {
			return err
		}
		list[i] = Capacity{
			Task: t.name, Width: t.width, Parameters: r.Parameters, Accuracy: r.TrainAccuracy, Exact: r.TrainExact,
		}
		if t.heldOut {
			list[i].Accuracy, list[i].Exact = r.ValAccuracy, r.ValExact
		}
		list[i].Predicted = math.Pow(list[i].Accuracy, float64(t.answer))
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	r := &Report{
		Study: "emergence", Seen: emergenceSeen(list), Figures: map[string]any{"models": list},
		Headlines: emergenceHeadlines(list),
	}
	for _, t := range capacityTasks {
		r.Charts = append(r.Charts, emergenceChart(t.name, list))
	}
	return r, list, d.Write(r)
}

// build makes the text of a task, unless it exists.
func (t *capacityTask) build(ctx context.Context, dir string) error {
	if dataset.Exists(dir) {
		return nil
	}
	text, err := t.text()
	if err == nil {
		_, err = text.Build(ctx, dir, false)
	}
	return err
}

// config is a model of two layers, trained on batches of 256 documents.
func (t *capacityTask) config(data string, width int, o EmergenceOptions) (*config.Config, error) {
	const batch = 256
	return run.LoadConfig(config.Sources{Overrides: []string{
		"data.path=" + data, "data.packing=pad", fmt.Sprintf("seed=%d", o.Seed), "precision=fp32",
		"model.layers=2", fmt.Sprintf("model.dim=%d", width), "model.heads=2", "model.positions=learned",
		"model.tie_embeddings=false", fmt.Sprintf("model.init_std=%.4f", 1/math.Sqrt(float64(width))),
		fmt.Sprintf("model.context=%d", t.context), "optimizer.lr=4e-3", "optimizer.beta2=0.98",
		"optimizer.weight_decay=0", fmt.Sprintf("train.steps=%.0f", t.longer*float64(o.Steps)),
		fmt.Sprintf("schedule.warmup=%d", max(o.Steps/50, 1)), fmt.Sprintf("train.batch_tokens=%d", batch*t.context),
		fmt.Sprintf("train.micro_batch=%d", batch), "train.eval_every=0", "train.eval_tokens=16000",
		"train.eval_answers=true",
	}})
}

// ofTask returns the models of a task, narrowest first.
func ofTask(list []Capacity, task string) (part []Capacity) {
	for _, c := range list {
		if c.Task == task {
			part = append(part, c)
		}
	}
	return part
}

// farthest returns the model whose answers are farthest from the prediction from its tokens.
func farthest(list []Capacity) (worst Capacity) {
	for _, c := range list {
		if math.Abs(c.Exact-c.Predicted) >= math.Abs(worst.Exact-worst.Predicted) {
			worst = c
		}
	}
	return worst
}

// sharpest returns the largest rise of right answers from one width to the next, and the place of the second; without
// any, 0 and 0.
func sharpest(list []Capacity) (jump float64, at int) {
	for i := 1; i < len(list); i++ {
		if rise := list[i].Exact - list[i-1].Exact; rise > jump {
			jump, at = rise, i
		}
	}
	return jump, at
}

// emergenceHeadlines returns figures of how smoothly facts improve, and how sharply additions do.
func emergenceHeadlines(list []Capacity) []Headline {
	facts, sums := ofTask(list, "facts"), ofTask(list, "addition")
	jump, at := sharpest(sums)
	return []Headline{
		share("facts: right answers differ from the power of the digits by at most",
			math.Abs(farthest(facts).Exact-farthest(facts).Predicted)),
		share("additions: right answers differ from it by", math.Abs(farthest(sums).Exact-farthest(sums).Predicted)),
		share("additions: largest rise from a width to the next", jump),
		{"additions: width after that rise", float64(sums[at].Width), ""},
	}
}

// emergenceSeen describes the findings of both tasks.
func emergenceSeen(list []Capacity) string {
	var s strings.Builder
	facts := ofTask(list, "facts")
	first, last, worst := facts[0], facts[len(facts)-1], farthest(facts)
	hidden := first
	for _, c := range facts {
		if c.Exact < 0.05 {
			hidden = c
		}
	}
	fmt.Fprintf(&s,
		"Facts: from %d to %d parameters the share of right digits goes from %.0f to %.0f %%. At %d parameters "+
			"%.1f %% of the whole answers are right, though %.0f %% of the digits are. The share of digits to the "+
			"power of %d ",
		first.Parameters, last.Parameters, 100*first.Accuracy, 100*last.Accuracy, hidden.Parameters, 100*hidden.Exact,
		100*hidden.Accuracy, synth.FactDigits)
	if d := math.Abs(worst.Exact - worst.Predicted); d <= mirage {
		fmt.Fprintf(&s, "predicts whole answers within %.3f: they seem to come from nowhere, and do not.", d)
	} else {
		fmt.Fprintf(&s, "does not predict whole answers: it is off by %.3f at width %d.", d, worst.Width)
	}
	sums := ofTask(list, "addition")
	jump, at := sharpest(sums)
	off := farthest(sums)
	if at > 0 {
		fmt.Fprintf(&s,
			" Additions: between widths of %d and %d whole answers rise from %.1f to %.1f %%, and digits from "+
				"%.0f to %.0f %%.", sums[at-1].Width, sums[at].Width, 100*sums[at-1].Exact, 100*sums[at].Exact,
			100*sums[at-1].Accuracy, 100*sums[at].Accuracy)
	}
	if d := off.Exact - off.Predicted; math.Abs(d) > mirage {
		fmt.Fprintf(&s, " Here the power of the digits is off by %.2f at width %d: ", math.Abs(d), off.Width)
		if d > 0 {
			s.WriteString("errors come together in some answers.")
		} else {
			s.WriteString("some digits are much harder than others, and one of them is wrong in most answers.")
		}
		if jump >= 0.5 {
			s.WriteString(" This threshold is one of the model, not of the measure: not all emergence is a mirage.")
		}
	}
	return s.String()
}

// mirage is the largest difference between the power of the digits' accuracy and the share of whole answers at which
// the former counts as a prediction of the latter.
const mirage = 0.1

// emergenceChart shows both measures of a task over parameters.
func emergenceChart(task string, list []Capacity) *chart.Chart {
	var x, tokens, exact, predicted []float64
	for _, c := range ofTask(list, task) {
		x = append(x, float64(c.Parameters))
		tokens, exact, predicted = append(tokens, c.Accuracy), append(exact, c.Exact), append(predicted, c.Predicted)
	}
	return &chart.Chart{
		Title: map[string]string{"facts": "Random facts", "addition": "Additions of four digits, held out"}[task],
		X:     chart.Axis{Label: "parameters", Log: true},
		Y:     chart.Axis{Label: "share", Max: 1},
		Series: []chart.Series{
			{Name: "right digits", X: x, Y: tokens, Style: chart.Both},
			{Name: "right answers", X: x, Y: exact, Style: chart.Both},
			{Name: "right answers, if errors were independent", X: x, Y: predicted},
		},
	}
}
