package bench

import (
	"math"
	"time"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/optim"
	"anneal/tensor"
)

// NewtonSchulzCase is the measurement of the orthogonalisation of one matrix.
type NewtonSchulzCase struct {
	M       int `json:"m"`
	N       int `json:"n"`
	Threads int `json:"threads"`
	// GFLOPS counts all operations of the plain products; symmetric products need little more than half of them.
	GFLOPS         float64 `json:"gflops"`
	FractionOfPeak float64 `json:"fraction_of_peak"` // of the FP32 peak with as many threads
}

// newtonSchulzShapes are the hidden matrices of the widths 384 and 768, with fused matrices split as Muon does.
var newtonSchulzShapes = [][2]int{{384, 384}, {1024, 384}, {384, 1024}, {768, 768}, {2048, 768}, {768, 2048}}

// NewtonSchulz measures Muon's iteration on the matrices of two widths, each for the time d, and calls each with
// every result. The peak is measured anew before each matrix, because the clock varies.
func NewtonSchulz(tier isa.Tier, threads int, d time.Duration,
	each func(NewtonSchulzCase)) ([]NewtonSchulzCase, error) {
	dev := cpu.NewTier(tier, threads)
	defer dev.Close()
	const side = 2048 * 768
	a, err := tensor.NewArena("matrices", 4*(3*side+2*768*768)+8*tensor.Align)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	var cases []NewtonSchulzCase
	for _, s := range newtonSchulzShapes {
		a.Release(0)
		peak := dev.Peak(tensor.F32)
		best := fastest(d, newtonSchulz(dev, a, s[0], s[1]))
		rate := optim.PolarExpress().FLOPs(s[0], s[1]) / best.Seconds() / 1e9
		c := NewtonSchulzCase{s[0], s[1], dev.Threads(), rate, rate / peak}
		cases = append(cases, c)
		each(c)
	}
	return cases, nil
}

// newtonSchulz returns a function that orthogonalises the same matrix each time. The time includes copying it.
func newtonSchulz(dev device.Device, a *tensor.Arena, rows, cols int) func() {
	x, u := a.New(tensor.F32, rows, cols), a.New(tensor.F32, rows, cols)
	rng := tensor.NewRNG(1, tensor.PurposeData, 0)
	for i := range x.Len() {
		x.F32()[i] = float32(rng.Float64(uint64(i)) - 0.5)
	}
	var o optim.Orthogonaliser
	return func() {
		mark := a.Mark()
		dev.Copy(&u, &x)
		o.Run(optim.PolarExpress(), dev, &u, a)
		a.Release(mark)
	}
}

// fastest returns the shortest time of f. It calls f once without counting, then as often as fits in d, at least
// once.
func fastest(d time.Duration, f func()) time.Duration {
	f()
	best := time.Duration(math.MaxInt64)
	for start := time.Now(); best == math.MaxInt64 || time.Since(start) < d; {
		t := time.Now()
		f()
		best = min(best, time.Since(t))
	}
	return best
}
