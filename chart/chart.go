package chart

import (
	"fmt"
	"math"
)

// A Chart is one picture. Points that are not finite, and on a logarithmic axis those that are not positive, are gaps.
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series
	Bands  []Band
	Marks  []Mark
}

// An Axis describes the x or the y axis.
type Axis struct {
	Label    string    // with its unit, such as "loss (nats per token)"
	Log      bool      // logarithmic
	Min, Max float64   // the range shown, above 0 on a logarithmic axis; if both are 0, it covers all data
	Ticks    []float64 // labelled values; nil chooses round ones
}

// A Series is a run of points in the order in which a line joins them. X and Y are of one length.
type Series struct {
	Name  string // in the legend; "" leaves it out
	X, Y  []float64
	Style Style

	// Low and High, if any, are the edges of a band around the line, such as the smallest and the largest of several
	// runs; as long as X. Only the picture shows it.
	Low, High []float64
}

// A Style is how a series is drawn.
type Style uint8

// The styles.
const (
	Line   Style = iota // joined points
	Points              // points alone
	Both                // joined points, each of them visible
	Dots                // small points without lines, for noisy data
)

// A Band is a highlighted interval on the x axis.
type Band struct {
	Name     string
	From, To float64
}

// A Mark is a highlighted point.
type Mark struct {
	Name string
	X, Y float64
}

// check returns an error that names a series or an axis that cannot be drawn.
func (c *Chart) check() error {
	for i, s := range c.Series {
		if len(s.X) != len(s.Y) {
			return fmt.Errorf("chart: series %d, %q, has %d numbers in X and %d in Y: each point needs both",
				i, s.Name, len(s.X), len(s.Y))
		}
		if len(s.Low) != len(s.High) || s.Low != nil && len(s.Low) != len(s.X) {
			return fmt.Errorf("chart: series %d, %q, has %d numbers in X, %d in Low and %d in High: a band needs both "+
				"edges at each point", i, s.Name, len(s.X), len(s.Low), len(s.High))
		}
	}
	for _, a := range []struct {
		name string
		Axis
	}{{"x", c.X}, {"y", c.Y}} {
		if s := newScale(a.Axis); a.Min == 0 && a.Max == 0 || s.has(a.Min) && s.has(a.Max) && a.Min <= a.Max {
			continue
		}
		if a.Log {
			return fmt.Errorf("chart: a logarithmic %s axis cannot go from %g to %g\n"+
				"  try a Min above 0 and a larger Max", a.name, a.Min, a.Max)
		}
		return fmt.Errorf("chart: the %s axis cannot go from %g to %g\n  try a finite Min and a larger Max",
			a.name, a.Min, a.Max)
	}
	return nil
}

// scale is an axis with its final range. It maps min to 0 and max to 1.
type scale struct {
	min, max float64
	log      bool
}

// scales returns the ranges of both axes.
func (c *Chart) scales() (x, y scale) {
	x, y = newScale(c.X), newScale(c.Y)
	fitX, fitY := c.X.Min == 0 && c.X.Max == 0, c.Y.Min == 0 && c.Y.Max == 0
	see := func(px, py float64) {
		if !x.has(px) || !y.has(py) {
			return
		}
		if fitX {
			x.min, x.max = min(x.min, px), max(x.max, px)
		}
		if fitY {
			y.min, y.max = min(y.min, py), max(y.max, py)
		}
	}
	for _, s := range c.Series {
		for i := range s.X {
			see(s.X[i], s.Y[i])
		}
		for i := range s.Low {
			see(s.X[i], s.Low[i])
			see(s.X[i], s.High[i])
		}
	}
	for _, m := range c.Marks {
		see(m.X, m.Y)
	}
	for _, b := range c.Bands {
		if fitX && x.has(b.From) && x.has(b.To) {
			x.min, x.max = min(x.min, b.From, b.To), max(x.max, b.From, b.To)
		}
	}
	x.widen(0)
	y.widen(0.04) // so that lines do not run along the frame
	return x, y
}

func newScale(a Axis) scale {
	if a.Min == 0 && a.Max == 0 {
		return scale{math.Inf(1), math.Inf(-1), a.Log}
	}
	return scale{a.Min, a.Max, a.Log}
}

// has reports whether the axis can show a value. Larger magnitudes would overflow a range.
func (s scale) has(v float64) bool {
	return math.Abs(v) < 1e100 && (!s.log || v > 1e-100)
}

// widen extends the range at both ends by a part of it. An axis with one value or none gets a range.
func (s *scale) widen(part float64) {
	same := s.max-s.min <= 1e-9*max(math.Abs(s.min), math.Abs(s.max))
	switch {
	case s.min > s.max && s.log:
		s.min, s.max = 1, 10
	case s.min > s.max:
		s.min, s.max = 0, 1
	case same && s.log:
		s.min, s.max = s.min/2, s.max*2
	case same:
		d := max(math.Abs(s.min)/10, 1e-9)
		s.min, s.max = s.min-d, s.max+d
	case s.log:
		f := math.Pow(s.max/s.min, part)
		s.min, s.max = s.min/f, s.max*f
	default:
		d := (s.max - s.min) * part
		s.min, s.max = s.min-d, s.max+d
	}
}

// at returns the place of a value: 0 at the start of the axis, 1 at its end.
func (s scale) at(v float64) float64 {
	if s.log {
		return math.Log(v/s.min) / math.Log(s.max/s.min)
	}
	return (v - s.min) / (s.max - s.min)
}

// pieces returns the stretches of a series without gaps, as index ranges.
func (s Series) pieces(x, y scale) [][2]int {
	var list [][2]int
	from := 0
	for i := range len(s.X) + 1 {
		if i < len(s.X) && x.has(s.X[i]) && y.has(s.Y[i]) {
			continue
		}
		if i > from {
			list = append(list, [2]int{from, i})
		}
		from = i + 1
	}
	return list
}
