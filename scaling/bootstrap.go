package scaling

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Bootstrap fits n resamples of the points, drawn with replacement, and keeps their laws. It takes about n times as
// long as the fit. Equal seeds give equal laws.
//
// It assumes independent points. Points that share a trunk of training are not independent, so intervals are somewhat
// too narrow. Intervals do not include the error of the law itself, so far outside the points they are too narrow as
// well.
//
// A Fit that FitPoints did not make may have too few points to resample; it gets no laws.
func (f *Fit) Bootstrap(n int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	f.Resamples = make([]Law, 0, max(n, 0))
	if len(tooFew(f.Points)) > 0 {
		return
	}
	drawn := make([]Point, len(f.Points))
	for range n {
		for again := true; again; again = len(tooFew(drawn)) > 0 {
			for i := range drawn {
				drawn[i] = f.Points[random.IntN(len(f.Points))]
			}
		}
		law, _ := newProfile(drawn, f.Held).search(f.Law.Alpha, f.Law.Beta)
		f.Resamples = append(f.Resamples, law)
	}
}

// Interval is between two percentiles of a quantity.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Confidence is the confidence level of Interval: 95 %.
const Confidence = 0.95

// Interval returns the interval that holds a quantity in 95 % of the resamples; nil if there are no resamples. A
// quantity that a law does not have is +Inf or NaN; NaN is left out.
func (f *Fit) Interval(quantity func(Law) float64) *Interval {
	var values []float64
	for _, l := range f.Resamples {
		if v := quantity(l); !math.IsNaN(v) && len(l.undetermined()) == 0 {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return &Interval{percentile(values, (1-Confidence)/2), percentile(values, (1+Confidence)/2)}
}

// Undetermined returns how many resamples do not show that losses fall with N and with D. Intervals leave them out.
func (f *Fit) Undetermined() (n int) {
	for _, l := range f.Resamples {
		if len(l.undetermined()) > 0 {
			n++
		}
	}
	return n
}

// percentile returns the value that the given share of values is below, with linear interpolation between two values.
// share is 0 to 1. Without values it is NaN.
func percentile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	place := share * float64(len(sorted)-1)
	i := min(int(place), len(sorted)-1)
	if part := place - float64(i); part > 0 && i+1 < len(sorted) && sorted[i] < sorted[i+1] { // else Inf − Inf
		return sorted[i] + part*(sorted[i+1]-sorted[i])
	}
	return sorted[i]
}
