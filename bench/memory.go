package bench

import (
	"context"
	"slices"
	"time"

	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/model"
	"anneal/precision"
	"anneal/tensor"
	"anneal/train"
)

// MemoryCase compares the measured with the planned memory of one recomputation strategy.
type MemoryCase struct {
	Strategy        string  `json:"strategy"`         // memory.recompute
	Keeps           string  `json:"keeps"`            // what it keeps of each layer
	ActivationBytes int64   `json:"activation_bytes"` // peak in use
	PlannedBytes    int64   `json:"planned_bytes"`
	Less            float64 `json:"less"`       // activations without recomputation, divided by this case's
	StepMs          float64 `json:"step_ms"`    // forward and backward of one micro-batch, fastest
	ExtraTime       float64 `json:"extra_time"` // relative to the pass without recomputation, as a fraction
	// additional operations relative to forward and backward, as a fraction
	ExtraCompute float64 `json:"extra_compute"`

	layout model.Layout
	times  []time.Duration
}

// MemoryReport compares the strategies.
type MemoryReport struct {
	Shape     string       `json:"shape"`
	Precision string       `json:"precision"`
	Tier      string       `json:"tier"`
	Threads   int          `json:"threads"`
	Sequences int          `json:"sequences"` // in a micro-batch
	Context   int          `json:"context"`   // tokens in a sequence
	Rounds    int          `json:"rounds"`
	Cases     []MemoryCase `json:"cases"`
}

// Memory measures forward and backward passes of a model on random tokens. Each round runs all strategies in
// turn, so that all have the same conditions. The first strategy is none, the baseline of the others.
func Memory(ctx context.Context, o Options, strategies []string) (*MemoryReport, error) {
	cfg, err := o.config()
	if err != nil {
		return nil, err
	}
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
	dev, err := train.OpenDevice(cfg, "", 0)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	t, err := train.New(cfg, dev)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	cases, err := memoryCases(cfg, dev, append([]string{"none"}, strategies...))
	if err != nil {
		return nil, err
	}
	r := &MemoryReport{
		Shape: o.Shape, Precision: o.Precision, Tier: dev.Kernels(), Threads: dev.Threads(),
		Sequences: cfg.Train.MicroBatch, Context: cfg.Model.Context, Cases: cases,
	}
	for i := range cases { // warm-up: the first touch of memory pages
		if _, err := cases[i].measure(ctx, t, src); err != nil {
			return nil, err
		}
		cases[i].times = nil
	}
	for measured := time.Duration(0); r.Rounds < 3 || measured.Seconds() < o.Seconds; r.Rounds++ {
		for i := range cases {
			d, err := cases[i].measure(ctx, t, src)
			if err != nil {
				return nil, err
			}
			measured += d
			if o.OnStep != nil {
				o.OnStep(r.Rounds, measured)
			}
		}
	}
	for i := range cases {
		cases[i].conclude(&cases[0])
	}
	return r, nil
}

func memoryCases(cfg *config.Config, dev device.Properties, strategies []string) ([]MemoryCase, error) {
	var cases []MemoryCase
	for _, s := range strategies {
		c := cfg.Clone()
		if err := c.Override("memory.recompute=" + s); err != nil {
			return nil, err
		}
		if err := c.Validate(); err != nil {
			return nil, err
		}
		f, err := train.MeasureRun(c, dev)
		if err != nil {
			return nil, err
		}
		shape := f.Model
		outline := model.Outline(shape, precision.Policy{})
		m := MemoryCase{
			Strategy: s, Keeps: shape.Recompute.Describe(shape.Layers), PlannedBytes: f.Bytes(train.Activations),
			layout:       shape.Recompute,
			ExtraCompute: outline.RecomputedFLOPsPerToken(shape.Context) / outline.FLOPsPerToken(shape.Context),
		}
		cases = append(cases, m)
	}
	return cases, nil
}

// measure runs forward and backward once.
func (m *MemoryCase) measure(ctx context.Context, t *train.Trainer, src dataset.Source) (time.Duration, error) {
	t.SetRecompute(m.layout)
	i := slices.IndexFunc(t.Arenas(), func(a *tensor.Arena) bool { return a.Name() == train.Activations })
	keep := t.Arenas()[i]
	keep.Release(0)
	keep.ForgetPeak()
	start := time.Now()
	if err := t.Gradient(ctx, src, 0); err != nil {
		return 0, err
	}
	d := time.Since(start)
	m.times, m.ActivationBytes = append(m.times, d), int64(keep.Peak())
	return d, nil
}

// conclude takes the fastest of the rounds, which is least disturbed by other load.
func (m *MemoryCase) conclude(none *MemoryCase) {
	fastest := slices.Min(m.times)
	m.StepMs = fastest.Seconds() * 1e3
	m.ExtraTime = float64(fastest)/float64(slices.Min(none.times)) - 1
	m.Less = float64(none.ActivationBytes) / float64(m.ActivationBytes)
}
