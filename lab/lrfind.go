package lab

import (
	"context"
	"fmt"
	"math"

	"anneal/chart"
	"anneal/config"
	"anneal/run"
)

// LROptions are the options of a learning-rate range test.
type LROptions struct {
	Config    *config.Config
	Threads   int
	Low, High float64 // rates, 0 < Low < High
	Steps     int     // at least minSweep

	OnStep func(step int, lr, loss float64)
}

// LRRange is the result of a learning-rate range test (Smith 2015, arXiv 1506.01186). The model is trained from its
// initial weights for a few steps while the rate rises exponentially. Where the loss falls fastest, the rate is large
// enough to learn; beyond the lowest loss, the rate is too large. The suggested rates lie between the first and a
// third of the second.
type LRRange struct {
	Points   []LRPoint `json:"points"`
	Steepest float64   `json:"steepest_lr"` // where the loss falls fastest per factor of the rate
	Lowest   float64   `json:"lowest_lr"`   // where the loss is lowest
	Loss     float64   `json:"lowest_loss"` // nats per token at Lowest
	// the first rate beyond Lowest that is worse than no training; nil if there is none
	Diverges *float64 `json:"diverges_lr"`
	Low      float64  `json:"low"` // the suggested range
	High     float64  `json:"high"`
}

// LRPoint is a step of the test.
type LRPoint struct {
	LR       float64 `json:"lr"`
	Loss     float64 `json:"loss"`     // nats per token, before the update at this rate
	Smoothed float64 `json:"smoothed"` // smoothed in both directions, without the lag of a running mean
}

// minSweep is the smallest number of steps for a readable test.
const minSweep = 30

// FindLR runs a range test. It writes no file and changes no run.
func FindLR(ctx context.Context, o LROptions) (*LRRange, error) {
	if !(o.Low > 0) || !(o.High > o.Low) || math.IsInf(o.High, 0) || o.Steps < minSweep {
		return nil, config.Problem{
			Message: fmt.Sprintf("cannot sweep learning rates from %g to %g in %d steps", o.Low, o.High, o.Steps),
			Try:     fmt.Sprintf("--low above 0 and below --high, and --steps %d or more", minSweep),
		}
	}
	var r LRRange
	var mean debiased
	best := math.Inf(1)
	err := run.Sweep(ctx, run.SweepOptions{
		Config: o.Config, Threads: o.Threads, Low: o.Low, High: o.High, Steps: o.Steps,
		OnStep: func(lr, loss float64) bool {
			if math.IsNaN(loss) || math.IsInf(loss, 0) {
				return false
			}
			r.Points = append(r.Points, LRPoint{LR: lr, Loss: loss})
			if o.OnStep != nil {
				o.OnStep(len(r.Points), lr, loss)
			}
			now := mean.add(loss, 0.9)
			best = min(best, now)
			return now <= divergence*best
		},
	})
	if err != nil {
		return nil, err
	}
	return &r, r.read(o.Steps)
}

// divergence is the factor over the lowest loss at which a test ends (as in fastai).
const divergence = 4

// read finds the points of interest on the curve; steps is the number of steps requested.
func (r *LRRange) read(steps int) error {
	n := len(r.Points)
	unreadable := func(what, try string) error {
		return config.Problem{Message: what, Try: try}
	}
	if n < minSweep/2 {
		return unreadable(fmt.Sprintf("the loss diverged after %d steps, too few for a result", n),
			"a lower --low, or more --steps")
	}
	r.smooth(steps)
	// The first steps average few values, and the last ones already rise.
	from, to := n/10, n-5
	initial, lowest := 0.0, from
	for i := range max(from, 1) {
		initial += r.Points[i].Smoothed / float64(max(from, 1))
	}
	for i := from; i < to; i++ {
		if r.Points[i].Smoothed < r.Points[lowest].Smoothed {
			lowest = i
		}
	}
	r.Lowest, r.Loss = r.Points[lowest].LR, r.Points[lowest].Smoothed
	if r.Loss > 0.995*initial {
		return unreadable(fmt.Sprintf("no learning rate from %.2g to %.2g lowered the loss of %.3f by half a percent",
			r.Points[0].LR, r.Points[n-1].LR, initial),
			"a wider range, more --steps, or a larger train.batch_tokens")
	}
	steepest, slope := from, 0.0
	for i := max(from, 1); i <= min(lowest, n-2); i++ {
		a, b := r.Points[i-1], r.Points[i+1]
		if s := (b.Smoothed - a.Smoothed) / math.Log(b.LR/a.LR); s < slope {
			steepest, slope = i, s
		}
	}
	r.Steepest = r.Points[steepest].LR
	for _, p := range r.Points[lowest:] {
		if p.Smoothed > min(initial, divergence*r.Loss) {
			r.Diverges = &p.LR
			break
		}
	}
	r.High = r.Lowest / 3
	r.Low = min(r.Steepest, r.High/3) // keep a range even if the loss falls until just before its lowest point
	return nil
}

// smooth fills in the smoothed losses: a debiased running mean forward, and another one backward over it, so that the
// curve does not lag behind the rates. A hundred steps are averaged over about five. Losses are limited to one and a
// half times the first: the losses of a diverged model would otherwise hide the rates before it.
func (r *LRRange) smooth(steps int) {
	beta := 1 - 1/max(float64(steps)/25, 1.5)
	var forward, backward debiased
	for i := range r.Points {
		r.Points[i].Smoothed = forward.add(min(r.Points[i].Loss, 1.5*r.Points[0].Loss), beta)
	}
	for i := len(r.Points) - 1; i >= 0; i-- {
		r.Points[i].Smoothed = backward.add(r.Points[i].Smoothed, beta)
	}
}

// debiased is an exponential running mean without the bias towards its start.
type debiased struct{ sum, weight float64 }

func (m *debiased) add(x, beta float64) float64 {
	m.sum, m.weight = beta*m.sum+(1-beta)*x, beta*m.weight+1-beta
	return m.sum / m.weight
}

// Chart draws the test.
func (r *LRRange) Chart() *chart.Chart {
	raw := chart.Series{Name: "loss of a step", Style: chart.Dots}
	smoothed := chart.Series{Name: "smoothed"}
	initial := r.Points[0].Smoothed
	top := initial
	for _, p := range r.Points {
		raw.X, raw.Y = append(raw.X, p.LR), append(raw.Y, p.Loss)
		smoothed.X, smoothed.Y = append(smoothed.X, p.LR), append(smoothed.Y, p.Smoothed)
		top = max(top, p.Loss)
	}
	fall := initial - r.Loss
	c := &chart.Chart{
		Title: "learning-rate range test",
		X:     chart.Axis{Label: "learning rate", Log: true},
		// the losses after divergence would hide the rest
		Y:      chart.Axis{Label: "loss (nats per token)", Min: r.Loss - 0.3*fall, Max: min(top, initial+fall)},
		Series: []chart.Series{smoothed, raw},
		Bands:  []chart.Band{{Name: fmt.Sprintf("worth a try: %.2g to %.2g", r.Low, r.High), From: r.Low, To: r.High}},
	}
	for _, p := range r.Points {
		switch p.LR {
		case r.Steepest:
			c.Marks = append(c.Marks, chart.Mark{
				Name: fmt.Sprintf("falls fastest: %.2g", p.LR), X: p.LR, Y: p.Smoothed,
			})
		case r.Lowest:
			c.Marks = append(c.Marks, chart.Mark{Name: fmt.Sprintf("lowest: %.2g", p.LR), X: p.LR, Y: p.Smoothed})
		}
	}
	return c
}
