package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/buildinfo"
	"anneal/internal/isa"
	"anneal/internal/machine"
	"anneal/tensor"
)

// A Figure is one measured speed. More is better.
type Figure struct {
	Name  string  `json:"name"` // group/case/format/threads
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`

	// Share is Value relative to a reference measured at the same time: the peak of the machine's arithmetic, the
	// bandwidth of its memory, a plain loop, or the same work without the technique. Shares are comparable between
	// machines.
	Share float64 `json:"share"`
}

// A Suite has the figures of every benchmark, in the order in which they were measured.
type Suite struct {
	Version  string    `json:"version"`
	CPU      string    `json:"cpu"`
	Kernels  string    `json:"kernels"` // the tier
	Threads  int       `json:"threads"`
	Quick    bool      `json:"quick"`
	Measured time.Time `json:"measured"`
	Seconds  float64   `json:"seconds"` // that it took
	Figures  []Figure  `json:"figures"`
}

// SuiteOptions says what All measures and how it reports.
type SuiteOptions struct {
	Quick bool         // fewer cases, and less time for each: a minute instead of a quarter of an hour
	Phase func(string) // called with the name of each benchmark before it begins
	Each  func(Figure) // called with every figure
}

// All runs every benchmark of this machine's CPU.
func All(ctx context.Context, o SuiteOptions) (*Suite, error) {
	tier, err := isa.Choose()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	s := &Suite{
		Version: buildinfo.String(), CPU: cmp.Or(machine.CPUName(), runtime.GOARCH), Kernels: tier.String(),
		Threads: runtime.GOMAXPROCS(0), Quick: o.Quick, Measured: begin.UTC().Truncate(time.Second),
	}
	r := &suiteRun{ctx: ctx, tier: tier, threads: []int{1, s.Threads}, quick: o.Quick, add: func(f Figure) {
		s.Figures = append(s.Figures, f)
		o.Each(f)
	}}
	r.threads = slices.Compact(r.threads)
	for _, x := range []struct {
		name string
		run  func() error
	}{
		{"matrix products", r.products}, {"attention", r.attention}, {"optimizers", r.optimizers},
		{"training steps", r.steps}, {"generation", r.generation}, {"recomputation", r.recomputation},
		{"ranks", r.ranks}, {"text", r.text},
	} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		o.Phase(x.name)
		if err := x.run(); err != nil {
			return nil, fmt.Errorf("%s: %w", x.name, err)
		}
	}
	s.Seconds = time.Since(begin).Seconds()
	return s, nil
}

// suiteRun measures the parts of a suite.
type suiteRun struct {
	ctx     context.Context
	tier    isa.Tier
	threads []int // one, and all
	quick   bool
	add     func(Figure)
}

// time returns how long to measure a case.
func (r *suiteRun) time(d time.Duration) time.Duration {
	if r.quick {
		return d / 8
	}
	return d
}

func (r *suiteRun) products() error {
	_, err := GEMM(r.tier, r.threads, r.time(200*time.Millisecond), func(c GEMMCase) {
		r.add(Figure{fmt.Sprintf("gemm/%s %s %d×%d×%d/%s/%d", c.Name, c.Form, c.M, c.N, c.K, c.DType, c.Threads),
			c.GFLOPS, "GFLOP/s", c.FractionOfPeak})
	})
	return err
}

func (r *suiteRun) attention() error {
	lengths := []int{1024, 4096}
	if r.quick {
		lengths = lengths[:1]
	}
	for _, n := range r.threads {
		open := func() device.Device { return cpu.NewTier(r.tier, n) }
		_, err := Attention(open, AttentionOptions{
			Patterns: []string{"full", "window:256", "linear"}, Lengths: lengths, Heads: 8, HeadDim: 64,
			DType: tensor.BF16, Seconds: r.time(2 * time.Second).Seconds(),
		}, func(c AttentionCase) {
			name := fmt.Sprintf("attention/%s %d/bf16/%d", c.Pattern, c.Length, n)
			if c.GFLOPS > 0 {
				r.add(Figure{name, c.GFLOPS, "GFLOP/s", c.FractionOfPeak})
				return
			}
			// no pairs to count: relative to full attention, at equal peaks
			r.add(Figure{name, float64(c.Heads*c.Length) / c.Seconds / 1e6, "M tokens/s a head", 1 / c.OfDense})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *suiteRun) optimizers() error {
	all := r.threads[len(r.threads)-1]
	if _, err := Optimizers(all, r.time(2*time.Second), func(c OptimCase) {
		r.add(Figure{fmt.Sprintf("optimizer/%s/fp32/%d", c.Name, all), c.GBs, "GB/s", c.FractionOfBandwidth})
	}); err != nil {
		return err
	}
	_, err := NewtonSchulz(r.tier, all, r.time(time.Second), func(c NewtonSchulzCase) {
		r.add(Figure{fmt.Sprintf("optimizer/newton-schulz %d×%d/fp32/%d", c.M, c.N, all),
			c.GFLOPS, "GFLOP/s", c.FractionOfPeak})
	})
	return err
}

func (r *suiteRun) steps() error {
	shapes := []string{"micro", "demo", "tiny", "llama-98m", "gpt2-small"}
	if r.quick {
		shapes = shapes[:3]
	}
	for _, shape := range shapes {
		for _, precision := range []string{"bf16", "fp32"} {
			for _, n := range r.threads {
				x, err := Step(r.ctx, Options{Shape: shape, Precision: precision, Threads: n,
					Seconds: r.time(8 * time.Second).Seconds()})
				if err != nil {
					return err
				}
				r.add(Figure{fmt.Sprintf("step/%s/%s/%d", shape, precision, n),
					x.TokensPerSecond, "tokens/s", x.FractionOfPeak})
			}
		}
	}
	return nil
}

// generation continues sequences: reading the weights limits a few sequences, arithmetic limits many.
func (r *suiteRun) generation() error {
	shape := "llama-98m"
	if r.quick {
		shape = "tiny"
	}
	for _, precision := range []string{"bf16", "fp32"} {
		for _, n := range r.threads {
			x, err := Generate(r.ctx, Options{Shape: shape, Precision: precision, Threads: n,
				Seconds: r.time(8 * time.Second).Seconds()}, []int{1, 4, 16})
			if err != nil {
				return err
			}
			for _, c := range x.Cases {
				r.add(Figure{fmt.Sprintf("generate/%s × %d/%s/%d", shape, c.Sequences, precision, n),
					c.TokensPerSecond, "tokens/s", max(c.FractionOfBandwidth, c.FractionOfPeak)})
			}
			r.add(Figure{fmt.Sprintf("generate/%s prompts/%s/%d", shape, precision, n),
				x.PromptTokensPerSecond, "tokens/s", x.PromptTokensPerSecond / x.ForwardTokensPerSecond})
		}
	}
	return nil
}

// recomputation compares passes that compute activations again with those that keep them.
func (r *suiteRun) recomputation() error {
	all := r.threads[len(r.threads)-1]
	m, err := Memory(r.ctx, Options{Shape: "tiny", Precision: "bf16", Threads: all,
		Seconds: r.time(20 * time.Second).Seconds()}, []string{"selective", "sqrt", "every_layer"})
	if err != nil {
		return err
	}
	for _, c := range m.Cases[1:] {
		r.add(Figure{fmt.Sprintf("recompute/%s/bf16/%d", c.Strategy, all),
			1e3 / c.StepMs, "passes/s", 1 / (1 + c.ExtraTime)})
	}
	return nil
}

// ranks compares two ranks with one that has the threads of both.
func (r *suiteRun) ranks() error {
	all := r.threads[len(r.threads)-1]
	if all < 2 {
		return nil
	}
	shape := "tiny"
	if r.quick {
		shape = "demo"
	}
	x, err := Ranks(r.ctx, Options{Shape: shape, Precision: "bf16", Threads: all,
		Seconds: r.time(20 * time.Second).Seconds()}, "zero", 2)
	if err != nil {
		return err
	}
	for _, c := range x.Cases[1:] {
		r.add(Figure{fmt.Sprintf("ranks/%s %s/bf16/%d", shape, c.Name, all),
			c.TokensPerSecond, "tokens/s", c.OfOneRank})
	}
	return nil
}

// text measures the data wing on one core, beside a plain loop over as many bytes.
func (r *suiteRun) text() error {
	o := DataSpeedOptions{Bytes: 60e6, Threads: 1, Progress: func(string) {}}
	if r.quick {
		o.Bytes = 4e6
	}
	before := plainLoop(r.time(400 * time.Millisecond))
	d, err := Data(r.ctx, o)
	if err != nil {
		return err
	}
	loop := (before + plainLoop(r.time(400*time.Millisecond))) / 2
	for _, x := range []struct {
		name string
		rate float64
	}{
		{"learn a vocabulary", float64(d.Bytes) / 1e6 / d.BPETrainSeconds}, {"pretokenize", d.Pretokenize},
		{"encode, cold", d.EncodeCold}, {"encode, warm", d.EncodeWarm}, {"minhash", d.MinHash}, {"bloom", d.Bloom},
		{"filters", d.Filters}, {"files to shards", d.Pipeline},
	} {
		r.add(Figure{fmt.Sprintf("text/%s/1", x.name), x.rate, "MB/s", x.rate / loop})
	}
	return nil
}

// plainLoop returns how many megabytes a second a loop hashes byte by byte (FNV-1a): it depends on the clock alone.
func plainLoop(d time.Duration) float64 {
	text := make([]byte, 1<<20)
	hash := uint64(14695981039346656037)
	best := fastest(d, func() {
		for _, b := range text {
			hash = (hash ^ uint64(b)) * 1099511628211
		}
	})
	runtime.KeepAlive(hash)
	return float64(len(text)) / 1e6 / best.Seconds()
}
