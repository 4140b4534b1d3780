package scaling

import "math"

// A HeldBack says how the law of the other points predicts those with the most tokens, or the largest size. That is the
// nearest that points come to saying how far their law reaches: one that misses the end of its own points misses what
// lies beyond it by more.
type HeldBack struct {
	Column string  `json:"column"` // tokens or params, whose largest value was left out
	Factor float64 `json:"factor"` // of that value over the largest that remained
	Points int     `json:"points"` // that were left out
	Mean   float64 `json:"mean"`   // of predicted loss over loss, less 1
	Worst  float64 `json:"worst"`  // the largest of these in size
}

// HeldBack fits the points again without those with the most tokens, and without the largest size. What remains may be
// too little to fit: then a check is missing.
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

// without fits the points but for those with the largest value, and predicts these.
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
