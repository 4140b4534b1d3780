package train

import (
	"math"

	"anneal/train/config"
)

// spikeWindow is how many accepted losses the spike test compares with.
const spikeWindow = 64

// guard decides whether an update is applied. A loss or gradient that is not finite never is; with SpikeZ > 0 neither is
// a loss more than SpikeZ standard deviations above the mean of the last accepted ones. Its fields are part of the checkpoint.
type guard struct {
	maxSkips int
	spikeZ   float64

	Window    []float64 `json:"window"` // the last accepted losses, oldest first
	Row       int       `json:"row"`    // skips in a row
	Skipped   int       `json:"skipped"`
	NonFinite int       `json:"non_finite"` // of all skips

	RowNonFinite int `json:"row_non_finite"` // of those in a row
}

func newGuard(c config.Guard) guard {
	return guard{maxSkips: c.MaxSkips, spikeZ: c.SpikeZ, Window: make([]float64, 0, spikeWindow)}
}

// restore takes over what a checkpoint counted; the limits stay those of the configuration.
func (g *guard) restore(saved guard) {
	g.Window = append(g.Window[:0], saved.Window...)
	g.Row, g.Skipped, g.NonFinite, g.RowNonFinite = saved.Row, saved.Skipped, saved.NonFinite, saved.RowNonFinite
}

// accept reports whether to apply the update of a step with this loss and gradient norm, and counts.
func (g *guard) accept(loss, norm float64) bool {
	ok := finite(loss + norm)
	if !ok {
		g.NonFinite++
		g.RowNonFinite++
	}
	if !ok || g.spike(loss) {
		g.Row++
		g.Skipped++
		return false
	}
	g.Row, g.RowNonFinite = 0, 0
	if len(g.Window) == spikeWindow {
		copy(g.Window, g.Window[1:])
		g.Window = g.Window[:spikeWindow-1]
	}
	g.Window = append(g.Window, loss)
	return true
}

// exhausted reports whether so many updates in a row were skipped that the run should stop.
func (g *guard) exhausted() bool { return g.maxSkips > 0 && g.Row >= g.maxSkips }

// spike reports whether loss stands out above a full window.
func (g *guard) spike(loss float64) bool {
	if g.spikeZ <= 0 || len(g.Window) < spikeWindow {
		return false
	}
	mean, sq := 0.0, 0.0
	for _, x := range g.Window {
		mean += x / spikeWindow
	}
	for _, x := range g.Window {
		sq += (x - mean) * (x - mean) / spikeWindow
	}
	return loss > mean+g.spikeZ*math.Sqrt(sq)
}
