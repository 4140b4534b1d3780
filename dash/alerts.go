package dash

import (
	"anneal/internal/units"
	"fmt"
	"math"
)

// An Alert is an event of a run that the user should know.
type Alert struct {
	Kind string `json:"kind"` // nan, spike, slow, stall, disk, lines, or an event of the journal
	Step int    `json:"step"` // the last step that shows it
	Text string `json:"text"`
}

// A detector finds unusual steps. It takes each step once.
type detector struct {
	loss   smooth
	spread smooth // of the squared deviations of losses from their mean
	rate   smooth

	notFinite, firstNotFinite, lastNotFinite int
	spikes                                   int
	spike                                    Alert // the last
	fast                                     float64
	last                                     int
}

const (
	spikeSigmas = 6    // standard deviations above the mean
	spikeShare  = 0.05 // and so much above it
	slowShare   = 0.7  // of the usual rate
	settled     = 50   // steps before a mean is reliable
)

func newDetector() *detector {
	return &detector{loss: smooth{over: 20}, spread: smooth{over: 200}, rate: smooth{over: 2000}}
}

// smooth is an exponential moving average over about so many values.
type smooth struct{ over, mean, n float64 }

func (s *smooth) add(x float64) {
	s.n++
	s.mean += (x - s.mean) / min(s.n, s.over)
}

// empty reports whether a step had no targets: it has neither a loss nor a rate.
func (e entry) empty() bool { return e.skipped && math.IsNaN(e.loss) && !(e.lr > 0) }

// step takes the next step.
func (d *detector) step(e entry) {
	d.last = e.step
	above := e.loss - d.loss.mean
	most := spikeSigmas * math.Sqrt(d.spread.mean)
	switch {
	case e.empty():
	case math.IsNaN(e.loss):
		if d.notFinite == 0 {
			d.firstNotFinite = e.step
		}
		d.notFinite++
		d.lastNotFinite = e.step
	case d.loss.n >= settled && above > spikeShare*d.loss.mean && above > most:
		d.spikes++
		d.spike = Alert{"spike", e.step, fmt.Sprintf("the loss of step %d was %.4g, where %.4g is usual",
			e.step, e.loss, d.loss.mean)}
		d.loss.add(d.loss.mean + most) // a lasting new level becomes the mean
	default:
		if d.loss.n > 0 {
			d.spread.add(above * above)
		}
		d.loss.add(e.loss)
	}
	if e.rate > 0 {
		if d.fast == 0 {
			d.fast = e.rate
		}
		d.fast += (e.rate - d.fast) / 20
		d.rate.add(e.rate)
	}
}

// alerts returns the alerts so far.
func (d *detector) alerts() []Alert {
	var list []Alert
	if d.notFinite > 0 {
		list = append(list, Alert{"nan", d.lastNotFinite, fmt.Sprintf("the loss was not finite in %d of the steps "+
			"from %d to %d", d.notFinite, d.firstNotFinite, d.lastNotFinite)})
	}
	if a := d.spike; d.spikes > 0 {
		if d.spikes > 1 {
			a.Text += fmt.Sprintf("; %d such steps in all", d.spikes)
		}
		list = append(list, a)
	}
	if d.rate.n >= settled && d.fast < slowShare*d.rate.mean {
		list = append(list, Alert{"slow", d.last, fmt.Sprintf(
			"training has slowed down: %s tokens/s, where %s are usual",
			units.Commas(int64(d.fast)), units.Commas(int64(d.rate.mean)))})
	}
	return list
}
