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
	"anneal/use"
)

// GrokkingOptions are the options of Grok.
type GrokkingOptions struct {
	Seeds int `json:"seeds"` // runs with weight decay; one run without is the control
	Steps int `json:"steps"`
}

// The text of the study: 880 of the 2,209 sums modulo 47.
const (
	grokModulus  = 47
	grokExamples = 880
	grokTokens   = 4  // tokens of a row: the end of the previous document, two numbers and =, followed by the sum
	grokEvery    = 20 // steps between evaluations
	grokWeights  = 200
	grokked      = 0.99 // share of right answers
)

// A GrokkingRun is the result of a model.
type GrokkingRun struct {
	Name  string  `json:"name"`
	Decay float64 `json:"weight_decay"`

	// shares of right sums after steps, of training sums and of held-out sums
	Step  []float64 `json:"step"`
	Train []float64 `json:"train_accuracy"`
	Val   []float64 `json:"val_accuracy"`

	// at some steps: the norm of all weights, and the share of the power of the numbers' embeddings that their five
	// strongest frequencies have
	WeightStep []float64 `json:"weight_step"`
	Norm       []float64 `json:"weight_norm"`
	Fourier    []float64 `json:"fourier_share"`

	Memorised   int `json:"memorised_step"`   // first step with 99 % of the training sums right; 0: never
	Generalised int `json:"generalised_step"` // first step with 99 % of the held-out sums right; 0: never
}

// Grok trains a model of one layer on sums modulo 47 until it generalises long after it has memorised (Power et al.
// 2022, arXiv 2201.02177; the setting is close to that of Nanda et al. 2023, arXiv 2301.05217), o.Seeds times with
// weight decay and once without.
func Grok(ctx context.Context, d *Dir, o GrokkingOptions) (*Report, []GrokkingRun, error) {
	if err := grokData(ctx, d.File("data")); err != nil {
		return nil, nil, err
	}
	runs := make([]GrokkingRun, o.Seeds+1)
	for i := range o.Seeds {
		runs[i] = GrokkingRun{Name: fmt.Sprintf("seed-%d", i+1), Decay: 1}
	}
	runs[o.Seeds] = GrokkingRun{Name: "no-decay"}
	err := lab.Together(ctx, len(runs), 0, func(ctx context.Context, i int) error {
		cfg, err := grokConfig(d.File("data"), i%o.Seeds+1, o.Steps, runs[i].Decay)
		if err != nil {
			return err
		}
		if _, err := d.Train(ctx, runs[i].Name, cfg); err != nil {
			return err
		}
		return runs[i].measure(d.File(runs[i].Name), o.Steps)
	})
	if err != nil {
		return nil, nil, err
	}
	r := &Report{
		Study: "grokking", Seen: grokSeen(runs), Figures: map[string]any{"runs": runs},
		Charts: []*chart.Chart{grokCurves(runs), grokProgress(runs[0])},
	}
	return r, runs, d.Write(r)
}

// grokData makes the sums, unless they exist.
func grokData(ctx context.Context, dir string) error {
	if dataset.Exists(dir) {
		return nil
	}
	t, err := synth.Modular{P: grokModulus, Fraction: grokExamples / float64(grokModulus*grokModulus), Seed: 1}.Text()
	if err == nil {
		_, err = t.Build(ctx, dir, false)
	}
	return err
}

// grokConfig returns the configuration: full-batch training of one layer, at a constant rate and without clipping.
func grokConfig(data string, seed, steps int, decay float64) (*config.Config, error) {
	return run.LoadConfig(config.Sources{Overrides: []string{
		"data.path=" + data, "data.packing=pad", fmt.Sprintf("seed=%d", seed), "precision=fp32",
		"model.layers=1", "model.dim=64", "model.heads=4", "model.positions=learned", "model.tie_embeddings=false",
		"model.init_std=0.125",
		fmt.Sprintf("model.context=%d", grokTokens),
		"optimizer.lr=3e-3", "optimizer.beta2=0.98", fmt.Sprintf("optimizer.weight_decay=%g", decay),
		"schedule.name=constant", "schedule.warmup=10", fmt.Sprintf("train.steps=%d", steps),
		fmt.Sprintf("train.batch_tokens=%d", grokExamples*grokTokens),
		fmt.Sprintf("train.micro_batch=%d", grokExamples),
		"train.clip=0", "guard.spike_z=0", fmt.Sprintf("train.eval_every=%d", grokEvery), "train.eval_tokens=0",
		"train.eval_packing=pad", "train.eval_answers=true", fmt.Sprintf("checkpoint.every=%d", grokWeights),
		fmt.Sprintf("checkpoint.keep=%d", steps/grokWeights+2),
	}})
}

// measure reads the curves of a run, and its weights.
func (g *GrokkingRun) measure(dir string, steps int) error {
	events, err := run.Evaluations(dir, func(string) {})
	if err != nil {
		return err
	}
	for _, e := range events {
		g.Step = append(g.Step, float64(e.Step))
		g.Train, g.Val = append(g.Train, e.TrainAccuracy), append(g.Val, e.ValAccuracy)
		if g.Memorised == 0 && e.TrainAccuracy >= grokked {
			g.Memorised = e.Step
		}
		if g.Generalised == 0 && e.ValAccuracy >= grokked {
			g.Generalised = e.Step
		}
	}
	for step := grokWeights; step <= steps; step += grokWeights {
		norm, share, err := grokProgressOf(dir, step)
		if err != nil {
			return err
		}
		g.WeightStep, g.Norm, g.Fourier = append(g.WeightStep, float64(step)), append(g.Norm, norm),
			append(g.Fourier, share)
	}
	return nil
}

// grokProgressOf returns the norm of the weights of a step, and the share of the embeddings' power.
func grokProgressOf(dir string, step int) (norm, share float64, err error) {
	r, err := use.OpenWith(dir, use.OpenOptions{Threads: 1, WeightOptions: run.WeightOptions{Step: int64(step)}})
	if err != nil {
		return 0, 0, err
	}
	defer r.Close()
	for _, p := range r.Model.Params() {
		for _, x := range p.Value.F32() {
			norm += float64(x) * float64(x)
		}
	}
	table := r.Model.Params()[0].Value // [V, D]
	var rows [][]float64
	var text []byte
	for n := range grokModulus {
		text = append(text[:0], synth.Symbol(n))
		id := r.Tokenizer.NewEncoder().Encode(nil, text)[0]
		row := make([]float64, table.Dim(1))
		for i := range row {
			row[i] = table.Float64(int(id)*table.Dim(1) + i)
		}
		rows = append(rows, row)
	}
	return math.Sqrt(norm), fourierShare(rows, 5), nil
}

// fourierShare returns the share of the power of rows [P, D], along P and without the mean, in the strongest
// frequencies. The cosine and sine of a frequency count together.
func fourierShare(rows [][]float64, strongest int) float64 {
	p := len(rows)
	power := make([]float64, p/2+1)
	all := 0.0
	for k := 1; k <= p/2; k++ {
		for i := range rows[0] {
			var re, im float64
			for n, row := range rows {
				sin, cos := math.Sincos(2 * math.Pi * float64(k*n%p) / float64(p))
				re, im = re+row[i]*cos, im+row[i]*sin
			}
			power[k] += re*re + im*im
		}
		all += power[k]
	}
	sum := 0.0
	for range strongest {
		best := 0
		for k := range power {
			if power[k] > power[best] {
				best = k
			}
		}
		sum += power[best]
		power[best] = 0
	}
	return sum / all
}

// grokSeen describes the results of the runs.
func grokSeen(runs []GrokkingRun) string {
	var s strings.Builder
	n, control := len(runs)-1, runs[len(runs)-1]
	memorised, generalised, late := 0, 0, 0
	for _, r := range runs[:n] {
		if r.Memorised > 0 {
			memorised++
		}
		if r.Generalised > 0 {
			generalised++
		}
		if r.Generalised >= 10*r.Memorised && r.Memorised > 0 {
			late++
		}
	}
	fmt.Fprintf(&s,
		"With weight decay %d of %d models memorised 99 %% of their sums, and %d of them later got 99 %% of "+
			"the sums right that they had not seen", memorised, n, generalised)
	if late > 0 {
		fmt.Fprintf(&s, ", %d of them after more than ten times as many steps", late)
	}
	s.WriteString(". Without decay the model ")
	if control.Memorised > 0 {
		s.WriteString("memorised as well")
	} else {
		s.WriteString("did not even memorise, so that this control says nothing")
	}
	last := len(control.Val) - 1
	fmt.Fprintf(&s, ", and had %.0f %% of the unseen sums at the end.", 100*control.Val[last])
	if first := runs[0]; len(first.Fourier) > 0 {
		w, c := len(first.Fourier)-1, len(control.Fourier)-1
		fmt.Fprintf(&s, " Five of the 23 frequencies hold %.0f %% of the power of the numbers' embeddings in the end "+
			"(%.0f %% without decay)", 100*first.Fourier[w], 100*control.Fourier[c])
		if first.Fourier[w] >= 0.6 && first.Fourier[w] >= 1.5*control.Fourier[c] {
			s.WriteString(": the model computes with a few rotations")
		}
		fmt.Fprintf(&s, ". The norm of its weights went from %.1f to %.1f (%.1f without decay).", first.Norm[0],
			first.Norm[w], control.Norm[c])
	}
	return s.String()
}

// grokCurves draws accuracies over steps.
func grokCurves(runs []GrokkingRun) *chart.Chart {
	c := &chart.Chart{
		Title: "Sums modulo 47: memorised first, understood later",
		X:     chart.Axis{Label: "step", Log: true},
		Y:     chart.Axis{Label: "share of right sums", Max: 1},
	}
	first, control := runs[0], runs[len(runs)-1]
	c.Series = append(c.Series, chart.Series{Name: "trained on", X: first.Step, Y: first.Train})
	for _, r := range runs[:len(runs)-1] {
		c.Series = append(c.Series, chart.Series{Name: "held out, " + r.Name, X: r.Step, Y: r.Val})
	}
	c.Series = append(c.Series, chart.Series{Name: "held out, no decay", X: control.Step, Y: control.Val})
	return c
}

// grokProgress draws the norm and the frequencies of the weights over steps.
func grokProgress(r GrokkingRun) *chart.Chart {
	norm := make([]float64, len(r.Norm))
	for i, x := range r.Norm {
		norm[i] = x / r.Norm[0]
	}
	return &chart.Chart{
		Title: "Progress under the surface",
		X:     chart.Axis{Label: "step"},
		Y:     chart.Axis{Label: "share", Max: 1.05},
		Series: []chart.Series{
			{Name: "power in five frequencies", X: r.WeightStep, Y: r.Fourier},
			{Name: "norm of the weights, of that at step 200", X: r.WeightStep, Y: norm},
		},
	}
}
