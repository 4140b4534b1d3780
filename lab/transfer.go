package lab

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"anneal/chart"
	"anneal/config"
	"anneal/dataset"
	"anneal/internal/units"
	"anneal/run"
)

// TransferOptions describes the models that a sweep trains: each size at each rate.
type TransferOptions struct {
	Family
	// values of optimizer.lr, rising; nil means seven, from an eighth of the configuration's to eight times it
	Rates []float64

	OnRun func(text string) // called when a run begins, with the progress of the sweep
}

// Transfer is the result of a sweep over learning rates at several widths or depths. With muP the best rate does not
// change with the width (Yang et al. 2022, arXiv 2203.03466, figure 1), nor, with a base depth, with the depth (Dey et
// al. 2025, arXiv 2505.01618).
type Transfer struct {
	Standard bool
	Axis     string // width or depth
	Sizes    []int
	Rates    []float64
	Steps    int
	Loss     [][]float64 // [size][rate], nats per token of held-out text; NaN where training failed
	Best     []float64   // the rate with the lowest loss at each size; NaN if all failed
	Largest  []string    // the overrides that make the configuration that of the largest size
}

// SweepRates trains the configuration at every size and rate, from the same seed on the same data. It keeps only the
// losses.
func SweepRates(ctx context.Context, o TransferOptions) (*Transfer, error) {
	if err := o.setSizes(); err != nil {
		return nil, err
	}
	if err := o.setRates(); err != nil {
		return nil, err
	}
	t := &Transfer{Standard: o.Standard, Rates: o.Rates}
	t.Axis, t.Sizes = o.axis()
	var err error
	if t.Largest, err = o.settings(t.Sizes[len(t.Sizes)-1]); err != nil {
		return nil, err
	}
	pace := newPace(len(t.Sizes) * len(o.Rates))
	for _, size := range t.Sizes {
		name := fmt.Sprintf("%s %d", t.Axis, size)
		var losses []float64
		best, lowest := math.NaN(), math.Inf(1)
		for _, rate := range o.Rates {
			cfg, err := o.of(size, fmt.Sprintf("optimizer.lr=%g", rate))
			if err != nil {
				return nil, err
			}
			t.Steps = cfg.Train.Steps
			if text := pace.begin(fmt.Sprintf("%s, rate %.3g", name, rate)); o.OnRun != nil {
				o.OnRun(text)
			}
			loss, err := heldOutLoss(ctx, cfg)
			pace.end()
			if err != nil {
				return nil, fmt.Errorf("%s, rate %g: %w", name, rate, err)
			}
			if loss < lowest {
				best, lowest = rate, loss
			}
			losses = append(losses, loss)
		}
		t.Loss, t.Best = append(t.Loss, losses), append(t.Best, best)
	}
	return t, nil
}

// setRates fills in Rates if it is empty.
func (o *TransferOptions) setRates() error {
	if o.Rates == nil {
		_, sizes := o.axis()
		cfg, err := o.of(sizes[0])
		if err != nil {
			return err
		}
		for k := -3; k <= 3; k++ {
			o.Rates = append(o.Rates, math.Ldexp(cfg.Optimizer.LR, k))
		}
	}
	for i, rate := range o.Rates {
		if !(rate > 0) || i > 0 && rate <= o.Rates[i-1] {
			return config.Problem{
				Key: "optimizer.lr", Message: fmt.Sprintf("the rates %s are not positive and ascending",
					units.List("%g", o.Rates)), Try: "rates such as 0.001,0.002,0.004",
			}
		}
	}
	return nil
}

// heldOutLoss trains to the end and evaluates.
func heldOutLoss(ctx context.Context, cfg *config.Config) (float64, error) {
	t, err := run.NewTrial(cfg, nil, nil)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	for range cfg.Train.Steps {
		s, err := t.Step(ctx)
		if err != nil {
			return 0, err
		}
		if math.IsNaN(s.Loss) || math.IsInf(s.Loss, 0) {
			return math.NaN(), nil
		}
	}
	r, err := t.Evaluate(ctx, cfg.Train.EvalTokens)
	switch {
	case err != nil:
		return 0, err
	case r.Tokens == 0:
		return 0, &dataset.Error{Err: fmt.Errorf("%s: %w, which is needed to compare learning rates\n  build one with "+
			"`anneal data build --val 0.01`", cmp.Or(cfg.Data.Path, cfg.Data.Mix.String()), dataset.ErrNoValidation)}
	case math.IsNaN(r.Loss) || math.IsInf(r.Loss, 0):
		return math.NaN(), nil
	}
	return r.Loss, nil
}

// Shift returns the best rate of the largest model divided by that of the smallest; 1 is perfect transfer.
func (t *Transfer) Shift() float64 { return t.Best[len(t.Best)-1] / t.Best[0] }

// Chart shows the loss over the rate, with a line for each size.
func (t *Transfer) Chart() *chart.Chart {
	pic := &chart.Chart{
		Title: Parametrisation(t.Standard) + ": loss by learning rate",
		X:     chart.Axis{Label: "learning rate", Log: true, Ticks: t.Rates},
		Y:     chart.Axis{Label: fmt.Sprintf("validation loss after %d steps (nats per token)", t.Steps)},
	}
	for i, size := range t.Sizes {
		s := chart.Series{Name: fmt.Sprintf("%s %d", t.Axis, size), X: t.Rates, Style: chart.Both}
		for j, loss := range t.Loss[i] {
			s.Y = append(s.Y, loss)
			if t.Rates[j] == t.Best[i] {
				pic.Marks = append(pic.Marks, chart.Mark{X: t.Rates[j], Y: loss})
			}
		}
		pic.Series = append(pic.Series, s)
	}
	return pic
}
