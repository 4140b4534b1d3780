package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"anneal/dataset"
	"anneal/device"
	"anneal/model"
	"anneal/tensor"
	"anneal/train"
)

// GenerateCase is the speed of continuing a number of sequences at a time.
type GenerateCase struct {
	Sequences       int     `json:"sequences"`
	TokensPerSecond float64 `json:"tokens_per_second"` // of all sequences together
	PassMs          float64 `json:"pass_ms"`           // the fastest pass: one token for each sequence
	GBs             float64 `json:"gbs"`               // 10⁹ bytes of weights read per second
	// GBs divided by the bandwidth. Bandwidth limits a pass of few sequences, which waits for the weights; arithmetic
	// limits a pass of many.
	FractionOfBandwidth float64 `json:"fraction_of_bandwidth"`
	FractionOfPeak      float64 `json:"fraction_of_peak"` // of arithmetic
}

// GenerateReport compares generation with the limits of the machine, all measured in one process.
type GenerateReport struct {
	Shape        string  `json:"shape"`
	Precision    string  `json:"precision"`
	Eight        bool    `json:"weights_in_8_bits"`
	Device       string  `json:"device"`
	Threads      int     `json:"threads"`
	Parameters   int64   `json:"parameters"`
	WeightBytes  int64   `json:"weight_bytes"`  // that a pass reads
	BandwidthGBs float64 `json:"bandwidth_gbs"` // of reading memory, 10⁹ bytes per second
	PeakGFLOPS   float64 `json:"peak_gflops"`

	// PromptTokensPerSecond is the speed of reading prompts, and ForwardTokensPerSecond that of evaluation, which is
	// the forward pass and the loss of training.
	PromptTokensPerSecond  float64 `json:"prompt_tokens_per_second"`
	ForwardTokensPerSecond float64 `json:"forward_tokens_per_second"`

	Cases []GenerateCase `json:"cases"`
}

const (
	generateSteps  = 16       // passes of a case per round
	generateStart  = 32       // tokens of a sequence before these passes
	generatePrompt = 256      // tokens of a prompt, all in one pass
	readBytes      = 64 << 20 // of the array that is read for the bandwidth, in FP32 numbers of four bytes
)

// Generate times passes of random weights that continue 1, 4, 16 … sequences by a token each, of their tokens 33 to
// 48. Cases, prompts, evaluation and reading of memory alternate, and the fastest run of each counts, so that other
// work on the machine has little influence and affects all.
func Generate(ctx context.Context, o Options, sequences []int) (*GenerateReport, error) {
	o.Context = max(Shapes[o.Shape].Model.Context, generateStart+generateSteps) // micro's is too short
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
	if o.Eight {
		eight, err := t.Model().HoldEight(t.Policy(), dev)
		if err != nil {
			return nil, err
		}
		defer eight.Close()
	}
	slots := slices.Max(sequences)
	b, err := model.NewBatcher(t.Model(), t.Policy(), dev, slots, max(slots, generatePrompt))
	if err != nil {
		return nil, err
	}
	defer b.Close()
	e, err := train.NewEvaluator(cfg, t.Policy(), dev, t.Model())
	if err != nil {
		return nil, err
	}
	defer e.Close()
	a, err := dev.NewArena("bandwidth", 4*readBytes)
	if err != nil {
		return nil, err
	}
	defer a.Close()

	r := &GenerateReport{
		Shape: o.Shape, Precision: o.Precision, Eight: o.Eight, Device: dev.Name(), Threads: dev.Threads(),
		Parameters: t.Model().Count(), WeightBytes: b.WeightBytes(), PeakGFLOPS: dev.Peak(t.Policy().Operand),
	}
	for _, n := range sequences {
		r.Cases = append(r.Cases, GenerateCase{Sequences: n, PassMs: math.Inf(1)})
	}
	run := generateRun{
		b: b, e: e, dev: dev, array: a.New(tensor.F32, readBytes),
		src:    dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed),
		prompt: make([]int32, min(generatePrompt, cfg.Model.Context)),
	}
	dev.Zero(&run.array)
	fastest, err := run.rounds(ctx, o, r.Cases)
	if err != nil {
		return nil, err
	}
	r.BandwidthGBs = float64(run.array.Bytes()) / fastest.memory / 1e9
	r.PromptTokensPerSecond = float64(len(run.prompt)) / fastest.prompt
	r.ForwardTokensPerSecond = float64(cfg.Train.MicroBatch*cfg.Model.Context) / fastest.forward
	r.rate(t.Model().FLOPsPerToken(generateStart) / 3) // of the forward pass
	return r, nil
}

// rate derives the speeds of the cases from their times; a token takes that many floating-point operations.
func (r *GenerateReport) rate(flops float64) {
	for i := range r.Cases {
		c := &r.Cases[i]
		c.TokensPerSecond = float64(c.Sequences) / c.PassMs * 1e3
		c.GBs = float64(r.WeightBytes) / c.PassMs / 1e6
		c.FractionOfBandwidth = c.GBs / r.BandwidthGBs
		if r.PeakGFLOPS > 0 {
			c.FractionOfPeak = c.TokensPerSecond * flops / 1e9 / r.PeakGFLOPS
		}
	}
}

// timed returns how many seconds f takes.
func timed(f func()) float64 {
	begin := time.Now()
	f()
	return time.Since(begin).Seconds()
}

// generateRun passes sequences of zeros through a model, evaluates it and reads memory.
type generateRun struct {
	b      *model.Batcher
	e      *train.Evaluator
	dev    device.Device
	array  tensor.Tensor // [readBytes] that is read for the bandwidth
	src    dataset.Source
	prompt []int32
	list   []model.Stretch
}

// generateTimes are seconds of the fastest reading of memory, prompt and evaluation.
type generateTimes struct{ memory, prompt, forward float64 }

// rounds times everything by turns until the time of the options is over, and sets the times of the cases.
func (g *generateRun) rounds(ctx context.Context, o Options, cases []GenerateCase) (generateTimes, error) {
	x := generateTimes{math.Inf(1), math.Inf(1), math.Inf(1)}
	begin := time.Now()
	for round := 0; round < 4 || time.Since(begin).Seconds() < o.Seconds; round++ {
		if ctx.Err() != nil {
			return x, context.Cause(ctx)
		}
		if round == 1 { // the first touches memory
			begin = time.Now()
		}
		var err error
		x.memory = min(x.memory, timed(func() { g.dev.MaxAbs(&g.array) }))
		x.prompt = min(x.prompt, timed(g.read))
		x.forward = min(x.forward, timed(func() { _, _, err = g.e.Losses(g.src, 0) }))
		if err != nil {
			return x, err
		}
		for i := range cases {
			c := &cases[i]
			c.PassMs = min(c.PassMs, 1e3*g.pass(c.Sequences))
		}
		if err := g.dev.Wait(); err != nil {
			return x, err
		}
		if o.OnStep != nil {
			o.OnStep(round, time.Since(begin))
		}
	}
	return x, nil
}

// read reads a prompt.
func (g *generateRun) read() {
	g.b.Run([]model.Stretch{{IDs: g.prompt, Logits: 1}})
	g.dev.Wait() // the device keeps an error for later
}

// pass returns the seconds of the fastest of several passes that continue n sequences by a token each.
func (g *generateRun) pass(n int) float64 {
	for i := range n {
		g.b.Run([]model.Stretch{{Slot: i, IDs: g.prompt[:generateStart]}})
	}
	g.dev.Wait()
	fastest := math.Inf(1)
	for step := range generateSteps {
		g.list = g.list[:0]
		for i := range n {
			at := generateStart + step
			g.list = append(g.list, model.Stretch{Slot: i, IDs: g.prompt[:at+1], First: at, Logits: 1})
		}
		fastest = min(fastest, timed(func() {
			g.b.Run(g.list)
			g.dev.Wait()
		}))
	}
	return fastest
}

// String returns the case as a line for the user.
func (c GenerateCase) String() string {
	return fmt.Sprintf("%9d  %9.1f  %8.2f  %8.1f  %9.0f%%  %6.0f%%", c.Sequences, c.TokensPerSecond, c.PassMs, c.GBs,
		100*c.FractionOfBandwidth, 100*c.FractionOfPeak)
}
