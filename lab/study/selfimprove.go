package study

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"anneal/chart"
	"anneal/config"
	"anneal/dataset"
	"anneal/lab"
	"anneal/prepare/synth"
	"anneal/run"
	"anneal/use"
)

// SelfImproveOptions are the options of SelfImprove.
type SelfImproveOptions struct {
	Seed     int `json:"seed"`
	Examples int `json:"examples"` // examples with worked steps: the seeds
	Pool     int `json:"pool"`     // questions with only their results
	Rounds   int `json:"rounds"`   // rounds after the model of the seeds
	Steps    int `json:"steps"`    // of each model

	Decay float64 `json:"weight_decay"`
}

const (
	improveTest    = 500 // held-out questions
	improveContext = 33  // tokens of a sum of three digits with its steps and a hint
	improveBatch   = 64
)

// An Improved is a way to continue from the seeds.
type Improved struct {
	Name     string      `json:"name"`
	Accuracy []float64   `json:"accuracy"` // share of held-out questions with the right result, after each round
	Rounds   []lab.Round `json:"rounds,omitempty"`
}

// First returns the accuracy of the first model.
func (m Improved) First() float64 { return m.Accuracy[0] }

// Last returns the accuracy of the last model.
func (m Improved) Last() float64 { return m.Accuracy[len(m.Accuracy)-1] }

// The ways, in the order of SelfImprove's result.
const (
	wayFiltered = iota
	wayHinted
	wayUnfiltered
	wayLonger
	ways
)

// SelfImprove lets a model that has seen a few additions with their steps teach itself the others (STaR: Zelikman et
// al. 2022, arXiv 2203.14465): it keeps its own steps if they lead to the right result. A second way also gives it the
// result as a hint if it failed. There are two controls: without the filter, and with the same number of steps on the
// seeds alone.
func SelfImprove(ctx context.Context, d *Dir, o SelfImproveOptions) (*Report, []Improved, error) {
	s := selfImprovement{SelfImproveOptions: o, d: d, task: synth.Addition{
		Digits: 3, Scratchpad: true, Train: o.Examples + o.Pool, Val: improveTest, Seed: uint64(o.Seed),
	}}
	if err := s.texts(ctx); err != nil {
		return nil, nil, err
	}
	list := []Improved{
		wayFiltered:   {Name: "right answers"},
		wayHinted:     {Name: "right answers, with hints"},
		wayUnfiltered: {Name: "all answers"},
		wayLonger:     {Name: fmt.Sprintf("seeds alone, %d times the steps", o.Rounds+1)},
	}
	err := lab.Together(ctx, ways, 0, func(ctx context.Context, i int) (err error) {
		if i == wayLonger {
			return s.longer(ctx, &list[i])
		}
		return s.improve(ctx, i, &list[i])
	})
	if err != nil {
		return nil, nil, err
	}
	r := &Report{
		Study: "selfimprove", Seen: improvedSeen(o, list), Figures: map[string]any{"ways": list},
		Charts: []*chart.Chart{improvedChart(list)},
	}
	r.Headlines = append(r.Headlines, share("the first model", list[wayFiltered].First()))
	for _, m := range list {
		r.Headlines = append(r.Headlines, share("after the last round: "+m.Name, m.Last()))
	}
	return r, list, d.Write(r)
}

// selfImprovement is the state of the study.
type selfImprovement struct {
	SelfImproveOptions
	d    *Dir
	task synth.Addition
	pool []lab.Question // with hints
	test []string
}

// texts draws seeds, pool and test, which are all different, and makes the data sets of the seeds unless they exist:
// one plain, and one with each example repeated after its hint, so that the model learns what a hint is.
func (s *selfImprovement) texts(ctx context.Context) error {
	t, err := s.task.Text()
	if err != nil {
		return err
	}
	for _, text := range t.Train[s.Examples:] {
		s.pool = append(s.pool, lab.Question{Prompt: promptOf(text), Hint: hintOf(text)})
	}
	for _, text := range t.Val {
		s.test = append(s.test, promptOf(text))
	}
	t.Train = t.Train[:s.Examples]
	hinted := t
	for _, text := range t.Train {
		hinted.Train = append(hinted.Train[:len(hinted.Train):len(hinted.Train)], hintOf(text)+text)
	}
	for name, text := range map[string]synth.Text{"seeds": t, "hinted-seeds": hinted} {
		if dataset.Exists(s.d.File(name)) {
			continue
		}
		if _, err := text.Build(ctx, s.d.File(name), false); err != nil {
			return err
		}
	}
	return nil
}

// promptOf returns the question of a worked example.
func promptOf(text string) string {
	prompt, _, _ := strings.Cut(text, "=")
	return prompt + "="
}

// hintOf returns the result of a worked example, which comes before the question: "9750|".
func hintOf(text string) string { return text[strings.LastIndexByte(text, ';')+1:] + "|" }

// config returns the configuration of a model of two layers on a data set of the study.
func (s *selfImprovement) config(data string, steps int) (*config.Config, error) {
	return run.LoadConfig(config.Sources{Overrides: []string{
		"data.path=" + s.d.File(data), "data.packing=pad", fmt.Sprintf("seed=%d", s.Seed), "precision=fp32",
		"threads=1", "model.layers=2", "model.dim=64", "model.heads=4", "model.positions=learned",
		"model.tie_embeddings=false", "model.init_std=0.125", fmt.Sprintf("model.context=%d", improveContext),
		"optimizer.lr=2e-3", "optimizer.beta2=0.98", fmt.Sprintf("optimizer.weight_decay=%g", s.Decay),
		fmt.Sprintf("train.steps=%d", steps),
		fmt.Sprintf("schedule.warmup=%d", max(steps/50, 1)),
		fmt.Sprintf("train.batch_tokens=%d", improveBatch*improveContext),
		fmt.Sprintf("train.micro_batch=%d", improveBatch), "train.eval_every=0",
	}})
}

// improve runs the loop of a way, and measures its models.
func (s *selfImprovement) improve(ctx context.Context, way int, m *Improved) error {
	name, data, pool := []string{"filtered", "hinted", "unfiltered"}[way], "seeds", s.pool
	verify := func(_ context.Context, prompt, answer string) (lab.Verdict, error) {
		if way == wayUnfiltered || s.task.Right(prompt+answer) {
			return lab.Accepted, nil
		}
		return lab.Rejected, nil
	}
	if way == wayHinted {
		data = "hinted-seeds"
	} else {
		pool = withoutHints(pool)
	}
	cfg, err := s.config(data, s.Steps)
	if err != nil {
		return err
	}
	rounds, err := lab.Improve(ctx, lab.ImproveOptions{
		Dir: s.d.File(name), Config: cfg, Questions: pool, Verify: verify, Rounds: s.Rounds, PromptEnd: "=",
		OnRound: func(r lab.Round) {
			if s.d.Note != nil {
				s.d.Note(fmt.Sprintf("%s: round %d of %d", m.Name, r.Round, s.Rounds))
			}
		},
	})
	var nothing *lab.NothingAcceptedError
	if err != nil && !errors.As(err, &nothing) {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	m.Rounds = rounds
	for i := range rounds {
		share, err := s.accuracy(ctx, rounds[i].Run)
		if err != nil {
			return err
		}
		m.Accuracy = append(m.Accuracy, share)
		rounds[i].Run = ""
	}
	return nil
}

// withoutHints returns the same questions without hints.
func withoutHints(questions []lab.Question) (list []lab.Question) {
	for _, q := range questions {
		list = append(list, lab.Question{Prompt: q.Prompt})
	}
	return list
}

// longer trains one model on the seeds alone, with the steps of all models of a loop.
func (s *selfImprovement) longer(ctx context.Context, m *Improved) error {
	cfg, err := s.config("seeds", s.Steps*(s.Rounds+1))
	if err != nil {
		return err
	}
	if _, err := s.d.Train(ctx, "longer", cfg); err != nil {
		return err
	}
	share, err := s.accuracy(ctx, s.d.File("longer"))
	m.Accuracy = []float64{share}
	return err
}

// accuracy returns the share of the test questions that the model of a run answers with the right result.
func (s *selfImprovement) accuracy(ctx context.Context, dir string) (float64, error) {
	r, err := use.Open(dir, 1)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	list, err := r.GenerateMany(ctx, s.test, use.GenerateOptions{MaxTokens: improveContext}, nil)
	if err != nil {
		return 0, err
	}
	right := 0
	for i, x := range list {
		if x.Ended && s.task.Right(s.test[i]+x.Text) {
			right++
		}
	}
	return float64(right) / float64(len(list)), nil
}

// improvedSeen describes the results of the ways.
func improvedSeen(o SelfImproveOptions, list []Improved) string {
	var s strings.Builder
	filtered, hinted, all, longer := list[wayFiltered], list[wayHinted], list[wayUnfiltered], list[wayLonger]
	fmt.Fprintf(&s, "%d worked examples gave a model %.1f %% of the held-out sums. When it learnt from those of its "+
		"own answers to %d more questions that were right, it had %s after %s", o.Examples, 100*filtered.First(),
		o.Pool, percents(filtered.Accuracy[1:]), counted(len(filtered.Accuracy)-1, "round"))
	fmt.Fprintf(&s, "; with the result as a hint where it had failed, %s.", percents(hinted.Accuracy[1:]))
	fmt.Fprintf(&s, " Without the filter, from all of its answers alike, it had %s, and the seeds alone with as many "+
		"steps gave %.1f %%.", percents(all.Accuracy[1:]), 100*longer.Last())
	switch gain, control := filtered.Last()-filtered.First(), max(all.Last(), longer.Last())-filtered.First(); {
	case gain < 0.05:
		s.WriteString(" The model did not improve itself here: it had too little to begin with, or too few rounds.")
	case gain > 2*max(control, 0):
		s.WriteString(" So it is the filter that improves the model: neither its own text nor more steps do as much.")
	default:
		s.WriteString(" So the filter is not what improves the model here: a control gains half as much or more.")
	}
	return s.String()
}

// percents lists shares: "42.0, 89.2 and 94.8 %".
func percents(shares []float64) string {
	if len(shares) == 0 {
		return "nothing new"
	}
	var b strings.Builder
	for i, x := range shares {
		switch {
		case i > 0 && i == len(shares)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.1f", 100*x)
	}
	return b.String() + " %"
}

// counted formats a number with its noun: "1 round", "3 rounds".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// improvedChart draws accuracy over rounds.
func improvedChart(list []Improved) *chart.Chart {
	c := &chart.Chart{
		Title: "A model that learns from its own answers",
		X:     chart.Axis{Label: "round"},
		Y:     chart.Axis{Label: "share of right held-out sums", Max: 1},
	}
	last := 1.0
	for _, m := range list {
		last = max(last, float64(len(m.Accuracy)-1))
	}
	for i, m := range list {
		x, y := make([]float64, len(m.Accuracy)), m.Accuracy
		for n := range x {
			x[n] = float64(n)
		}
		if i == wayLonger {
			x, y = []float64{0, last}, []float64{m.Last(), m.Last()}
		}
		c.Series = append(c.Series, chart.Series{Name: m.Name, X: x, Y: y, Style: chart.Both})
	}
	return c
}
