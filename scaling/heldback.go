package scaling

import "math"

// A HeldBack says how well the law of the other points predicts those with the most tokens, or the largest size. This
// is the best evidence in the points of how far their law reaches: a law that misses the end of its own points misses
// points beyond them by more.
type HeldBack struct {
	Column string  `json:"column"` // tokens or params, whose largest value was left out
	Factor float64 `json:"factor"` // ratio of that value to the largest that remained
	Points int     `json:"points"` // that were left out
	Mean   float64 `json:"mean"`   // mean of predicted loss / loss − 1
	Worst  float64 `json:"worst"`  // the largest of these in size
}

// HeldBack fits the points again without those with the most tokens, and without the largest size. If too few points
// remain for a fit, that check is missing.
func (f *Fit) HeldBack() (list []HeldBack) {
	for _, c := range []struct {
		column string
		of     func(Point) float64
	}{{"tokens", Point.worth}, {"params", func(p Point) float64 { return p.Params }}} {
		if h, ok := f.without(c.of); ok {
			h.Column = c.column
			list = append(list, h)
		}
	}
	return list
}

// without fits the points except those with the largest value, and predicts these.
func (f *Fit) without(of func(Point) float64) (h HeldBack, ok bool) {
	most := 0.0
	for _, p := range f.Points {
		most = max(most, of(p))
	}
	var kept, left []Point
	next := 0.0
	for _, p := range f.Points {
		if of(p) == most {
			left = append(left, p)
			continue
		}
		kept, next = append(kept, p), max(next, of(p))
	}
	rest, err := FitPoints(kept, f.Held)
	if err != nil {
		return h, false
	}
	h = HeldBack{Factor: most / next, Points: len(left)}
	for _, p := range left {
		off := math.Expm1(-rest.Residual(p))
		h.Mean += off / float64(len(left))
		if math.Abs(off) > math.Abs(h.Worst) {
			h.Worst = off
		}
	}
	return h, true
}
