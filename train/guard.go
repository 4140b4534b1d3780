package train

import (
	"math"

	"anneal/train/config"
)

// guard decides whether an update is applied (the skip-step optimizers of OLMo and Levanter do the same). A loss or a
// gradient norm that is not finite never is. With SpikeZ > 0 neither is a step whose loss or gradient norm lies more than
// SpikeZ standard deviations above the mean of the last accepted ones; it takes half a window of them to judge. What was
// refused never enters the windows, so that a spike does not make the next one look ordinary.
//
// It costs nothing but two windows of numbers. Default: non-finite steps only; guard.spike_z = 6 is the usual choice. Not for
// runs whose loss is meant to jump, as where the data changes: a level that stays up is refused until max_skips ends the run.
//
// Its exported fields are part of the checkpoint.
type guard struct {
	maxSkips int
	spikeZ   float64
	window   int

	Losses []float64 `json:"window"` // the last accepted ones, oldest first
	Norms  []float64 `json:"norms"`  // of their gradients

	Row       int `json:"row"` // skips in a row
	Skipped   int `json:"skipped"`
	NonFinite int `json:"non_finite"` // of all skips

	RowNonFinite int `json:"row_non_finite"` // of those in a row
}

func newGuard(c config.Guard) guard {
	return guard{
		maxSkips: c.MaxSkips, spikeZ: c.SpikeZ, window: c.Window,
		Losses: make([]float64, 0, c.Window), Norms: make([]float64, 0, c.Window),
	}
}

// restore takes over what a checkpoint counted; the limits stay those of the configuration.
func (g *guard) restore(saved guard) {
	last := func(x []float64) []float64 { return x[max(0, len(x)-g.window):] }
	g.Losses, g.Norms = append(g.Losses[:0], last(saved.Losses)...), append(g.Norms[:0], last(saved.Norms)...)
	g.Row, g.Skipped, g.NonFinite, g.RowNonFinite = saved.Row, saved.Skipped, saved.NonFinite, saved.RowNonFinite
}

// accept reports whether to apply the update of a step with this loss and gradient norm, and counts.
func (g *guard) accept(loss, norm float64) bool {
	ok := finite(loss + norm)
	if !ok {
		g.NonFinite++
		g.RowNonFinite++
	}
	if !ok || g.spike(g.Losses, loss) || g.spike(g.Norms, norm) {
		g.Row++
		g.Skipped++
		return false
	}
	g.Row, g.RowNonFinite = 0, 0
	g.Losses, g.Norms = g.push(g.Losses, loss), g.push(g.Norms, norm)
	return true
}

// push adds x to a window, which drops its oldest number when it is full.
func (g *guard) push(window []float64, x float64) []float64 {
	if len(window) == g.window {
		copy(window, window[1:])
		window = window[:g.window-1]
	}
	return append(window, x)
}

// exhausted reports whether so many updates in a row were skipped that the run should stop.
func (g *guard) exhausted() bool { return g.maxSkips > 0 && g.Row >= g.maxSkips }

// leastDeviation is the smallest standard deviation that counts, as a part of the mean: where numbers hardly differ at
// all, a difference in the fourth digit is no spike.
const leastDeviation = 1e-3

// spike reports whether x stands out above a window.
func (g *guard) spike(window []float64, x float64) bool {
	n := float64(len(window))
	if g.spikeZ <= 0 || 2*len(window) < g.window {
		return false
	}
	mean, sq := 0.0, 0.0
	for _, v := range window {
		mean += v / n
	}
	for _, v := range window {
		sq += (v - mean) * (v - mean) / n
	}
	return x > mean+g.spikeZ*max(math.Sqrt(sq), leastDeviation*math.Abs(mean))
}
