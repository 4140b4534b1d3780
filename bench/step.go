package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/machine"
	"anneal/model"
	"anneal/train"
)

// Options selects the training step to time.
type Options struct {
	Shape     string  // a name of Shapes
	Precision string  // a name of precision.Names
	Device    string  // as in the config; "" is the CPU
	Threads   int     // 0 uses every core
	Seconds   float64 // duration of the measurement after warm-up; at least three steps
	Batch     int     // sequences per step; 0 means the shape's default
	Context   int     // tokens per sequence; 0 means the shape's default
	Layers    int     // of the model; 0 means the shape's default
	Eight     bool    // weights are held in 8 bits, for Generate

	OnStep func(steps int, measured time.Duration) // called after every step, including warm-up; may be nil
}

// StepResult is the cost of a training step.
type StepResult struct {
	TokensPerSecond  float64 `json:"tokens_per_second"`
	StepMsMedian     float64 `json:"step_ms_median"`
	Steps            int     `json:"steps"`
	FirstStepSeconds float64 `json:"first_step_seconds"` // from the call to the end of the first step
	PeakRSSBytes     int64   `json:"peak_rss_bytes"`
	GFLOPS           float64 `json:"gflops"`      // 10⁹ operations per second, counted by model.Decoder.FLOPsPerToken
	PeakGFLOPS       float64 `json:"peak_gflops"` // of the kernels' best instruction, measured in this process
	FractionOfPeak   float64 `json:"fraction_of_peak"`
	Parameters       int64   `json:"parameters"`
	Device           string  `json:"device"` // "cpu avx512, 2 threads"
	Tier             string  `json:"tier"`
	Threads          int     `json:"threads"` // of the CPU
	Loss             float64 `json:"loss"`    // of the last step, on random tokens: about ln V

	// LayerOverheadUs is the time of a micro-batch, with its share of the update, beyond its operations at peak,
	// divided by the layers, in µs. With the shape micro it is the overhead of calls; larger shapes add memory traffic.
	LayerOverheadUs float64 `json:"layer_overhead_us"`
}

// Shapes are the models of `bench step`.
var Shapes = map[string]struct {
	Model  model.Config
	Batch  int // sequences of a micro-batch
	Micros int // micro-batches of a step
}{
	"micro":     {benchModel(4, 32, 2, 96, 16, 128), 1, 16}, // so little arithmetic that a step is mostly overhead
	"demo":      {benchModel(4, 128, 4, 384, 256, 4096), 8, 1},
	"tiny":      {benchModel(6, 384, 6, 1024, 256, 4096), 16, 1},
	"llama-98m": {benchModel(12, 768, 12, 2048, 512, 16384), 4, 1},

	"gpt2-small": {benchGPT2(12, 768, 12, 1024, 50257), 4, 1}, // the released GPT-2, 124M parameters
	"llama-1.1b": {benchModel(20, 2048, 16, 5632, 2048, 32000), 4, 1},
}

func benchModel(layers, dim, heads, ffn, context, vocab int) model.Config {
	m := config.Default().Model
	m.Layers, m.Dim, m.Heads, m.FFN, m.Context, m.Vocab = layers, dim, heads, ffn, context, vocab
	return m
}

func benchGPT2(layers, dim, heads, context, vocab int) model.Config {
	m := benchModel(layers, dim, heads, 4*dim, context, vocab)
	m.Family = "gpt2"
	return m
}

// Step times whole training steps (forward, backward, clip, update) on random tokens.
func Step(ctx context.Context, o Options) (*StepResult, error) {
	begin := time.Now()
	cfg, err := o.config()
	if err != nil {
		return nil, err
	}
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
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
	r := &StepResult{Device: dev.Name(), Tier: dev.Kernels(), Threads: dev.Threads(), Parameters: t.Model().Count()}
	var times []time.Duration
	for step, measured := 1, time.Duration(0); len(times) < 3 || measured.Seconds() < o.Seconds; step++ {
		start := time.Now()
		stats, err := t.Step(ctx, src)
		if err != nil {
			return nil, err
		}
		r.Loss = stats.Loss
		if o.OnStep != nil {
			o.OnStep(step, measured)
		}
		if step == 1 {
			r.FirstStepSeconds = time.Since(begin).Seconds()
			continue // warm-up: the first touch of memory pages
		}
		times = append(times, time.Since(start))
		measured += times[len(times)-1]
	}
	slices.Sort(times)
	median := times[len(times)/2].Seconds()
	r.Steps, r.StepMsMedian = len(times), median*1e3
	r.TokensPerSecond = float64(cfg.Train.BatchTokens) / median
	r.GFLOPS = r.TokensPerSecond * t.Model().FLOPsPerToken(cfg.Model.Context) / 1e9
	_, r.PeakRSSBytes = machine.Resident()
	if r.PeakGFLOPS = dev.Peak(t.Policy().Operand); r.PeakGFLOPS > 0 {
		r.FractionOfPeak = r.GFLOPS / r.PeakGFLOPS
		micros := cfg.Train.BatchTokens / (cfg.Train.MicroBatch * cfg.Model.Context)
		r.LayerOverheadUs = 1e6 * median * (1 - r.FractionOfPeak) / float64(micros*cfg.Model.Layers)
	}
	return r, nil
}

// config returns the configuration of the benchmark's run, with the given values, as on a command line.
func (o Options) config(set ...string) (*config.Config, error) {
	if o.Batch < 0 || o.Context < 0 || !(o.Seconds >= 0) {
		return nil, config.Problem{
			Message: fmt.Sprintf("cannot measure a batch of %d with a context of %d for %v seconds",
				o.Batch, o.Context, o.Seconds),
			Try: "values of 0 (the shape's own batch and context) or more",
		}
	}
	shape, ok := Shapes[o.Shape]
	if !ok {
		names := make([]string, 0, len(Shapes))
		for name := range Shapes {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, config.Problem{
			Message: fmt.Sprintf("no shape is named %q", o.Shape), Try: "one of " + strings.Join(names, ", "),
		}
	}
	cfg := config.Default()
	cfg.Precision, cfg.Device, cfg.Threads, cfg.Model = o.Precision, cmp.Or(o.Device, "cpu"), o.Threads, shape.Model
	if o.Layers > 0 {
		cfg.Model.Layers = o.Layers
	}
	if o.Context > 0 {
		cfg.Model.Context = o.Context
	}
	cfg.Train.MicroBatch = shape.Batch
	if o.Batch > 0 {
		cfg.Train.MicroBatch = o.Batch
	}
	cfg.Train.BatchTokens = shape.Micros * cfg.Train.MicroBatch * cfg.Model.Context
	cfg.Data.Path = "random"
	for _, x := range set {
		if err := cfg.Override(x); err != nil {
			return nil, err
		}
	}
	cfg.Resolve()
	return cfg, cfg.Validate()
}
