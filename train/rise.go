package train

import "math"

// rises watches the norms of the layers' gradients for one that rises and stays up. This often precedes divergence by
// hundreds of steps (Wortsman et al. 2023, arXiv 2309.14322). A layer rises if the mean of the logarithm of its norm
// over the last steps has been well above the longer mean for a while. A rise is reported once, and again only after
// the layer has come down.
//
// Checkpoints do not store it: after a resume it learns the usual norms again, which takes riseSettle steps.
type rises struct {
	layers []riseOf
	norms  []float64 // of the current step
}

// riseOf is the state of a layer. Its means are exponential means of logarithms.
type riseOf struct {
	fast, slow mean
	above      int  // steps in a row
	told       bool // the current rise has been reported
}

const (
	riseFast   = 0.1  // weight of a step in the fast mean
	riseSlow   = 0.01 // and in the slow one
	riseFactor = 2    // ratio of the fast mean to the slow one
	riseOver   = 0.5  // share of the factor's logarithm below which a rise has ended
	riseSteps  = 20   // steps in a row above the factor
	riseSettle = 200  // steps before means count, because norms fall during warmup
)

// A Rise is a layer whose gradient has grown and stays large.
type Rise struct {
	Layer    int
	From, To float64 // norms: usual so far, and of the last steps
}

func newRises(layers int) rises {
	return rises{layers: make([]riseOf, layers), norms: make([]float64, layers)}
}

// observe takes the norms of a step whose update is applied, r.norms, and returns the layer that has risen most, if
// one must be reported.
func (r *rises) observe() (found *Rise) {
	most := 0.0
	for l := range r.layers {
		x, norm := &r.layers[l], math.Log(r.norms[l])
		if !finite(norm) { // a layer without a gradient
			continue
		}
		rise := x.fast.add(norm, riseFast) - x.slow.add(norm, riseSlow)
		switch {
		case x.slow.steps < riseSettle || rise < riseOver*math.Log(riseFactor):
			x.above, x.told = 0, false
		case rise > math.Log(riseFactor):
			x.above++
		default:
			x.above = 0
		}
		if x.above >= riseSteps && !x.told && rise > most {
			most, found = rise, &Rise{l, math.Exp(x.slow.value), math.Exp(x.fast.value)}
		}
	}
	if found != nil {
		for l := range r.layers { // one message for layers that rise together
			r.layers[l].told = r.layers[l].told || r.layers[l].above > 0
		}
	}
	return found
}

// mean is an exponential mean without the bias of its start.
type mean struct {
	value float64
	steps int
}

// add adds x with at least the weight w and returns the mean.
func (m *mean) add(x, w float64) float64 {
	m.steps++
	m.value += max(w, 1/float64(m.steps)) * (x - m.value)
	return m.value
}
