package lab

import (
	"context"
	"fmt"
	"math"

	"anneal/chart"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/run"
)

// CoordinateOptions are the options of the coordinate check of muP.
type CoordinateOptions struct {
	Family
	Random bool // train on random tokens instead of the configuration's data set
	Steps  int  // updates; activations are measured before the first and after each
	Seeds  int  // runs per width; their activations are averaged
	// of the narrowest model; 0 means optimizer.lr. A larger rate shows more; one that is too large shows other effects
	LR float64

	OnRun func(text string) // called when a run begins, with the progress of the check
}

// Coordinates is the result of a coordinate check (Yang et al. 2022, arXiv 2203.03466, appendix D.1): the size of
// activations at each width, before and after a few updates. With a correct parametrisation it does not depend on the
// width.
type Coordinates struct {
	Standard bool         `json:"standard"`
	Widths   []int        `json:"widths"`
	Layers   int          `json:"layers"`
	LR       float64      `json:"lr"`
	Seeds    int          `json:"seeds"`
	Rows     []Coordinate `json:"activations"`
}

// A Coordinate is one kind of activation after a number of updates.
type Coordinate struct {
	Tensor string    `json:"tensor"`
	Step   int       `json:"step"`
	Size   []float64 `json:"mean_abs"` // mean magnitude at each width
	Slope  float64   `json:"slope"`    // of log Size over log width
	Flat   bool      `json:"flat"`
}

const (
	maxSlope    = 0.15 // largest slope that counts as flat
	slopeSteps  = 3    // steps that must be flat: later the models have learned different things
	checkTokens = 1024 // tokens per step
)

// NotFlatError says that activations change with the width.
type NotFlatError struct {
	Worst    Coordinate
	Standard bool
}

func (e *NotFlatError) Error() string {
	what := fmt.Sprintf("%s activations grow like width^%.2f after %d updates; the exponent must stay within ±%.2f",
		e.Worst.Tensor, e.Worst.Slope, e.Worst.Step, maxSlope)
	if e.Standard {
		return what + "\n  this is expected of the standard parametrisation; model.mup=true keeps activations flat"
	}
	return what +
		"\n  try more --seeds or a smaller --lr; if the slope remains, learning rates will not transfer between widths"
}

// CheckCoordinates trains the configuration at every width for a few steps. If activations are not flat, it returns
// the full result together with a *NotFlatError.
func CheckCoordinates(ctx context.Context, o CoordinateOptions) (*Coordinates, error) {
	if err := o.setSizes(); err != nil {
		return nil, err
	}
	c := &Coordinates{Standard: o.Standard, Widths: o.Widths, Seeds: o.Seeds, LR: o.LR}
	size := make([][][seenKinds]float64, o.Steps+1) // by step, width and kind
	pace := newPace(len(o.Widths) * o.Seeds)
	for i, width := range o.Widths {
		cfg, err := o.of(width)
		if err != nil {
			return nil, err
		}
		c.Layers = cfg.Model.Layers
		if o.LR == 0 {
			c.LR = cfg.Optimizer.LR
		}
		for seed := range o.Seeds {
			if text := pace.begin(fmt.Sprintf("width %d, seed %d of %d", width, seed+1, o.Seeds)); o.OnRun != nil {
				o.OnRun(text)
			}
			seen, err := o.observe(ctx, cfg, c.LR, uint64(seed))
			pace.end()
			if err != nil {
				return nil, fmt.Errorf("width %d: %w", width, err)
			}
			for step, s := range seen {
				if seed == 0 {
					size[step] = append(size[step], [seenKinds]float64{})
				}
				for k, x := range s {
					size[step][i][k] += x / float64(o.Seeds)
				}
			}
		}
	}
	return c, c.judge(size)
}

// observe trains one width and returns the activations before each step and after the last.
func (o *CoordinateOptions) observe(ctx context.Context, cfg *config.Config, lr float64,
	seed uint64) ([][seenKinds]float64, error) {
	rows := max(checkTokens/cfg.Model.Context, 1)
	more := append(append(leavesOut("schedule."), leavesOut("train.batch_ramp")...),
		fmt.Sprintf("seed=%d", cfg.Seed+seed), fmt.Sprintf("optimizer.lr=%g", lr), "schedule.name=constant",
		"schedule.warmup=1", "schedule.branches=", "train.length_warmup=", "train.noise_scale_every=0",
		fmt.Sprintf("train.steps=%d", o.Steps+1), fmt.Sprintf("train.batch_tokens=%d", rows*cfg.Model.Context),
		fmt.Sprintf("train.micro_batch=%d", rows),
	)
	if o.Random && cfg.Model.Vocab == 0 {
		more = append(more, "model.vocab=1024")
	}
	if share := cfg.Optimizer.DecayTimescale; share > 0 { // of the whole run, not of these few steps
		more = append(more, "optimizer.decay_timescale=0",
			fmt.Sprintf("optimizer.weight_decay=%g", 1/(lr*share*float64(cfg.Train.Steps))))
	}
	cfg, err := o.of(cfg.Model.Dim, more...)
	if err != nil {
		return nil, err
	}
	var src dataset.Source
	if o.Random {
		src = dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
	}
	p := &probe{layers: cfg.Model.Layers}
	t, err := run.NewTrial(cfg, src, func(d device.Device) device.Device { p.Device = d; return p })
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var all [][seenKinds]float64
	for step := range o.Steps + 1 {
		p.take()
		if err := t.Look(); err != nil {
			return nil, err
		}
		all = append(all, p.take())
		if step == o.Steps {
			break
		}
		if _, err := t.Step(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// judge fits the slopes. It returns an error with the activation that depends most on the width, if any exceeds the
// limit. Logits may shrink: those of a random head do, and those of a trained head do not.
func (c *Coordinates) judge(size [][][seenKinds]float64) error {
	var worst *Coordinate
	excess := func(r *Coordinate) float64 {
		if r.Tensor == seenNames[seenLogits] {
			return r.Slope
		}
		return math.Abs(r.Slope)
	}
	for k, name := range seenNames {
		for step := range size {
			r := Coordinate{Tensor: name, Step: step}
			for _, s := range size[step] {
				r.Size = append(r.Size, s[k])
			}
			r.Slope = logSlope(c.Widths, r.Size)
			r.Flat = step > slopeSteps || excess(&r) <= maxSlope
			c.Rows = append(c.Rows, r)
		}
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if !r.Flat && (worst == nil || !(excess(r) <= excess(worst))) { // NaN is the worst
			worst = r
		}
	}
	if worst == nil {
		return nil
	}
	return &NotFlatError{*worst, c.Standard}
}

// Chart shows the size of activations relative to the smallest width, after the last update. With muP the lines are
// flat.
func (c *Coordinates) Chart() *chart.Chart {
	pic := &chart.Chart{
		Title: Parametrisation(c.Standard) + ": activations over the width",
		X:     chart.Axis{Label: "width (model.dim)", Log: true},
		Y: chart.Axis{
			Label: fmt.Sprintf("mean |activation| over that of width %d", c.Widths[0]), Log: true, Min: 0.25, Max: 64,
		},
	}
	for _, w := range c.Widths {
		pic.X.Ticks = append(pic.X.Ticks, float64(w))
	}
	for _, r := range c.Rows {
		if r.Step != c.Rows[len(c.Rows)-1].Step {
			continue
		}
		s := chart.Series{Name: r.Tensor, X: pic.X.Ticks, Style: chart.Both}
		for _, x := range r.Size {
			s.Y = append(s.Y, x/r.Size[0])
		}
		pic.Series = append(pic.Series, s)
	}
	return pic
}

// logSlope is the slope of the least-squares line through log y over log x: the exponent of a power law. Values that
// are all zero, such as the output of a head that starts at zero, count as flat.
func logSlope(x []int, y []float64) float64 {
	var n, sx, sy, sxx, sxy float64
	zero := true
	for i := range x {
		a, b := math.Log(float64(x[i])), math.Log(y[i])
		n, sx, sy, sxx, sxy = n+1, sx+a, sy+b, sxx+a*a, sxy+a*b
		zero = zero && y[i] == 0
	}
	if zero {
		return 0
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
