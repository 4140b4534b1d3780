package bench

import (
	"fmt"
	"time"

	"anneal/config"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/nn"
	"anneal/optim"
	"anneal/tensor"
	"anneal/train"
)

// OptimCase is the measurement of one optimizer's step.
type OptimCase struct {
	Name                   string  `json:"name"`
	Parameters             int     `json:"parameters"`
	StateBytesPerParameter float64 `json:"state_bytes_per_parameter"` // in its arena
	BytesPerParameter      float64 `json:"bytes_per_parameter"`       // read and written by a step
	StepMs                 float64 `json:"step_ms"`
	NsPerParameter         float64 `json:"ns_per_parameter"`
	GBs                    float64 `json:"gbs"`
	FractionOfBandwidth    float64 `json:"fraction_of_bandwidth"`
}

// OptimReport compares the optimizers' steps with the bandwidth of the memory, measured beside them.
type OptimReport struct {
	Tier         string      `json:"tier"`
	Threads      int         `json:"threads"`
	BandwidthGBs float64     `json:"bandwidth_gbs"`
	Cases        []OptimCase `json:"cases"`

	NewtonSchulz []NewtonSchulzCase `json:"newton_schulz"` // Muon's arithmetic
}

// optimRows and optimCols are the shape of the matrix that is updated: 125 MiB per tensor, so that the tensors of a
// step exceed any cache. With 128 MiB the same elements of all tensors would lie a power of two apart, where a Zen 3
// takes three times as long, because its first-level cache guesses the way from the address.
const optimRows, optimCols = 4000, 8192

// optimCases are the optimizers whose steps are bound by memory. The number is the bytes per parameter that a step
// moves in further passes, in addition to reading and writing the weight and its state once and reading the gradient
// once. Muon, which is bound by arithmetic, is in newtonschulz.go.
var optimCases = []struct {
	name  string
	set   []string
	extra float64
}{
	{"sgd", []string{"optimizer.name=sgd"}, 0},
	{"sgd, momentum", []string{"optimizer.name=sgd", "optimizer.momentum=0.9"}, 0},
	{"adam", []string{"optimizer.name=adam"}, 0},
	{"adamw", []string{"optimizer.name=adamw"}, 0},
	{"adamw, cautious decay", []string{"optimizer.name=adamw", "optimizer.cautious_decay=true"}, 0},
	// both moments again in 32 bits, written, changed and read
	{"adamw, moments in BF16", []string{"optimizer.moments=bf16"}, 2 * 4 * 4},
	{"adam8bit", []string{"optimizer.name=adam8bit"}, 0},
	{"lion", []string{"optimizer.name=lion"}, 0},
	{"ademamix", []string{"optimizer.name=ademamix"}, 0},
	// the average, the sequence and the weight again, twice; the gradient is written
	{"schedulefree", []string{"optimizer.name=schedulefree"}, 6 * 4},
	// the curvature is only read
	{"sophia", []string{"optimizer.name=sophia"}, -4},
	// gradient and weight for their sizes, gradient for the step
	{"adafactor", []string{"optimizer.name=adafactor"}, 3 * 4},
	// gradient, weight and second moment again
	{"adafactor, palm", []string{"optimizer.name=adafactor", "optimizer.variant=palm"}, 4 * 4},
}

// Optimizers times one update of a large matrix with every optimizer on a number of threads, each for the time d, and
// calls each with every result. The bandwidth is that of a kernel that reads two tensors and writes one of them, x ←
// a·x − b·y. Steps and kernel alternate, and the fastest run of each counts, so that other work on the machine has
// little influence and affects both. The fraction of a case is relative to the bandwidth measured beside it; the
// report has the highest bandwidth of all.
func Optimizers(threads int, d time.Duration, each func(OptimCase)) (*OptimReport, error) {
	dev, err := cpu.New(threads)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	r := &OptimReport{Tier: dev.Tier().String(), Threads: dev.Threads()}
	const n = 2 * optimRows * optimCols
	a, err := tensor.NewArena("bandwidth", 2*4*n)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	x, y := a.New(tensor.F32, n), a.New(tensor.F32, n)
	dev.Zero(&x)
	dev.Zero(&y)
	triad := func() { dev.Descend(&x, &y, device.Descend{LR: 0.5, Shrink: 0.5}) }
	for _, c := range optimCases {
		m, ns, err := measureUpdate(dev, c.set, d, triad)
		if err != nil {
			return nil, err
		}
		beside := 3 * 4 * n / ns
		r.BandwidthGBs = max(r.BandwidthGBs, beside)
		m.Name, m.BytesPerParameter = c.name, 3*4+2*m.StateBytesPerParameter+c.extra
		m.GBs = m.BytesPerParameter / m.NsPerParameter
		m.FractionOfBandwidth = m.GBs / beside
		r.Cases = append(r.Cases, m)
		each(m)
	}
	return r, nil
}

// measureUpdate times updates of a matrix by the optimizer of a configuration, and alternates them with another
// function, in nanoseconds.
func measureUpdate(dev device.Device, set []string, d time.Duration,
	other func()) (m OptimCase, beside float64, err error) {
	const n = optimRows * optimCols
	cfg, err := config.Load("", append([]string{"data.path=none"}, set...))
	if err != nil {
		return m, 0, err
	}
	opt := train.NewOptimizer(cfg.Optimizer)
	p, none := nn.Declare("w", nn.Matrix, optimRows, optimCols), tensor.NewMeasure("")
	p.Allocate(none, tensor.F32, none, tensor.F32)
	state, scratch := optim.Measure(opt, []*nn.Param{p})
	a, err := tensor.NewArena("optimizer", 2*4*n+state+scratch)
	if err != nil {
		return m, 0, fmt.Errorf("%s: %w", cfg.Optimizer.Name, err)
	}
	defer a.Close()
	p.Allocate(a, tensor.F32, a, tensor.F32)
	fillMatrix(&p.Value, 0.02)
	fillMatrix(&p.Grad, 1e-3)
	s, t := opt.Layout(a, p), 0
	ns, beside := inTurns(d, func() {
		t++
		opt.Update(dev, p, s, optim.Step{T: t, LR: cfg.Optimizer.LR, Decay: cfg.Optimizer.WeightDecay, Scale: 1,
			Cautious: cfg.Optimizer.CautiousDecay}, a)
	}, other)
	return OptimCase{Parameters: n, StateBytesPerParameter: float64(state) / n, StepMs: ns / 1e6,
		NsPerParameter: ns / n}, beside, nil
}

// fillMatrix fills t with numbers of both signs up to size, in a pattern without a short period.
func fillMatrix(t *tensor.Tensor, size float32) {
	x := t.F32()
	for i := range x {
		x[i] = size * (float32(uint32(i)*2654435761>>8)/(1<<23) - 1)
	}
}

// inTurns alternates f and g for d, at least three times after a first run that does not count, and returns the
// shortest time of each in nanoseconds.
func inTurns(d time.Duration, f, g func()) (fNs, gNs float64) {
	timed := func(f func()) float64 {
		begin := time.Now()
		f()
		return float64(time.Since(begin).Nanoseconds())
	}
	f() // touches memory for the first time
	fNs, gNs = timed(f), timed(g)
	for runs, start := 1, time.Now(); runs < 3 || time.Since(start) < d; runs++ {
		fNs, gNs = min(fNs, timed(f)), min(gNs, timed(g))
	}
	return fNs, gNs
}
