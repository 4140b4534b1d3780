package train

import (
	"math"

	"anneal/config"
)

// Guard decides whether an update is applied, like the skip-step optimizers of OLMo and Levanter. An update with a
// non-finite loss or gradient norm is never applied. With SpikeZ > 0, an update is also rejected if its loss or
// gradient norm is more than SpikeZ standard deviations above the mean of the last accepted ones, once half a window
// of these is known. Rejected values do not enter the windows, so a spike does not make the next one look normal.
//
// It costs only two windows of numbers. Default: only non-finite steps are skipped; guard.spike_z = 6 is usual. Not
// for runs whose loss is expected to jump, for example when the data changes: a level that stays higher is rejected
// until max_skips ends the run.
//
// Its exported fields are part of the checkpoint.
type Guard struct {
	maxSkips int
	spikeZ   float64
	window   int

	Losses []float64 `json:"window"` // the last accepted ones, oldest first
	Norms  []float64 `json:"norms"`  // of their gradients

	Row       int `json:"row"`       // current number of skips in a row
	RowFirst  int `json:"row_first"` // step of the first of them; steps that neither skip nor accept may lie between
	Skipped   int `json:"skipped"`
	NonFinite int `json:"non_finite"` // non-finite among all skips

	RowNonFinite int `json:"row_non_finite"` // non-finite among the current skips in a row
}

func newGuard(c config.Guard) Guard {
	return Guard{
		maxSkips: c.MaxSkips, spikeZ: c.SpikeZ, window: c.Window,
		Losses: make([]float64, 0, c.Window), Norms: make([]float64, 0, c.Window),
	}
}

// restore restores the counters of a checkpoint of a step; the limits remain those of the configuration.
func (g *Guard) restore(saved Guard, step int) {
	last := func(x []float64) []float64 { return x[max(0, len(x)-g.window):] }
	g.Losses, g.Norms = append(g.Losses[:0], last(saved.Losses)...), append(g.Norms[:0], last(saved.Norms)...)
	g.Row, g.Skipped, g.NonFinite, g.RowNonFinite = saved.Row, saved.Skipped, saved.NonFinite, saved.RowNonFinite
	if g.RowFirst = saved.RowFirst; g.RowFirst == 0 && g.Row > 0 { // saved before it was counted
		g.RowFirst = step - g.Row + 1
	}
}

// accept reports whether to apply the update of a step with this loss and gradient norm, and counts it.
func (g *Guard) accept(step int, loss, norm float64) bool {
	ok := finite(loss + norm)
	if !ok {
		g.NonFinite++
		g.RowNonFinite++
	}
	if !ok || g.spike(g.Losses, loss) || g.spike(g.Norms, norm) {
		if g.Row == 0 {
			g.RowFirst = step
		}
		g.Row++
		g.Skipped++
		return false
	}
	g.Row, g.RowFirst, g.RowNonFinite = 0, 0, 0
	g.Losses, g.Norms = g.push(g.Losses, loss), g.push(g.Norms, norm)
	return true
}

// push appends x to a window and drops its oldest number if it is full.
func (g *Guard) push(window []float64, x float64) []float64 {
	if len(window) == g.window {
		copy(window, window[1:])
		window = window[:g.window-1]
	}
	return append(window, x)
}

// Exhausted reports whether the run should stop because of too many skipped updates in a row.
func (g Guard) Exhausted() bool { return g.maxSkips > 0 && g.Row >= g.maxSkips }

// leastDeviation is the smallest standard deviation, relative to the mean: among nearly equal numbers, a difference
// in the fourth digit is not a spike.
const leastDeviation = 1e-3

// spike reports whether x is a spike above a window.
func (g *Guard) spike(window []float64, x float64) bool {
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
