package lab

import (
	"math"
	"slices"

	"anneal/chart"
	"anneal/internal/units"
	"anneal/run"
)

// AblationChart draws the losses of the variants over the tokens seen: the mean of their seeds, smoothed so that they
// can be distinguished, in a band from the smallest to the largest, which terminals do not show. warn receives messages
// about missing losses.
func AblationChart(list []Ablated, warn func(string)) (*chart.Chart, error) {
	c := &chart.Chart{
		Title: "Training loss, running mean of one seed",
		X:     chart.Axis{Label: "tokens"},
		Y:     chart.Axis{Label: "loss (nats per token)", Log: true},
	}
	if n := len(list[0].Runs); n > 1 {
		c.Title = "Training loss, running mean of " + units.Count(n, "seed")
	}
	for _, v := range list {
		s, err := v.curve(warn)
		if err != nil {
			return nil, err
		}
		c.Series = append(c.Series, s)
	}
	return c, nil
}

// curve returns the mean loss of a variant's runs at the tokens that all of them have. Runs that diverged count only if
// all did.
func (a *Ablated) curve(warn func(string)) (chart.Series, error) {
	s := chart.Series{Name: a.Name}
	runs := a.finite()
	if len(runs) == 0 {
		runs = a.Runs
	}
	var tokens []float64              // of the first run
	losses := map[float64][]float64{} // of the runs, by tokens
	for n, r := range runs {
		c, err := run.Losses(r.Run, warn)
		if err != nil {
			return s, err
		}
		if n == 0 {
			tokens = c.Tokens
		}
		for i, loss := range smooth(c.Loss) {
			losses[c.Tokens[i]] = append(losses[c.Tokens[i]], loss)
		}
	}
	for _, x := range tokens {
		if all := losses[x]; len(all) == len(runs) {
			s.X, s.Y = append(s.X, x), append(s.Y, mean(all))
			s.Low, s.High = append(s.Low, slices.Min(all)), append(s.High, slices.Max(all))
		}
	}
	return s, nil
}

// smooth returns the running mean over about twenty values.
func smooth(values []float64) []float64 {
	var mean debiased
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = mean.add(v, 0.95)
	}
	return out
}

// changeChart draws by how much each variant differs from the first, with its interval; nil if none has an interval.
func changeChart(list []Ablated) *chart.Chart {
	c := &chart.Chart{
		Title: "Change of held-out bits per byte, with 95 % intervals: to the left is better",
		X:     chart.Axis{Label: "change from the first variant (%)"},
		Y:     chart.Axis{Min: -float64(len(list)), Max: 0, Ticks: []float64{}},
		Series: []chart.Series{ // the first variant is the line at 0
			{Name: list[0].Name, X: []float64{0, 0}, Y: []float64{-float64(len(list)), 0}},
		},
	}
	found := false
	for i, v := range list[1:] {
		s := chart.Series{Name: v.Name, Style: chart.Both}
		if y := -float64(i + 1); math.IsNaN(v.Interval) {
			s.X, s.Y = []float64{100 * v.Change}, []float64{y}
		} else {
			found = true
			s.X, s.Y = []float64{
				100 * (v.Change - v.Interval), 100 * v.Change, 100 * (v.Change + v.Interval),
			}, []float64{y, y, y}
		}
		c.Series = append(c.Series, s)
	}
	if !found {
		return nil
	}
	return c
}
