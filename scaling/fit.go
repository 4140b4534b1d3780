package scaling

import (
	"cmp"
	"math"
)

// Fit is the law that fits points best.
type Fit struct {
	Law       Law     `json:"law"`
	Objective float64 `json:"objective"` // the sum of Huber losses of ln L, δ = 0.001
	Points    []Point `json:"points"`
	Held      float64 `json:"beta_held,omitempty"` // β, if it was given instead of fitted
	// laws of resampled points (bootstrap.go); none until Bootstrap
	Resamples []Law `json:"resamples"`
}

// firstExponent is where the search for both exponents starts.
const firstExponent = 0.5

// FitPoints returns the law with the lowest sum of Huber losses of ln L − ln L(N, D), as in approach 3 of Hoffmann et
// al. 2022. It searches only the two exponents: for each pair the best E, A and B follow (variable projection, Golub &
// Pereyra 1973). This has a single minimum and needs one start, while a search of all five numbers has several minima
// and needs hundreds of starts.
//
// A beta other than 0 is held fixed. Runs whose tokens differ by less than a factor of about twenty cannot distinguish
// E from β, and a law of such points predicts no gain from many more tokens, or too much. Published values are 0.28
// (Hoffmann et al. 2022) and 0.37 (Besiroglu et al. 2024, arXiv 2404.10102).
//
// The error is that of CheckBeta, or a *PointsError: too few points, numbers that no model has, tokens that follow from
// the size, or losses that do not fall with N or with D.
func FitPoints(points []Point, beta float64) (*Fit, error) {
	if err := CheckBeta(beta); err != nil {
		return nil, err
	}
	points, err := checked(points)
	if err != nil {
		return nil, err
	}
	if list := tooFew(points); len(list) > 0 {
		return nil, &PointsError{list}
	}
	rule := tokensBySize(points)
	if rule.exact() {
		return nil, &PointsError{[]string{rule.reason()}}
	}
	f := &Fit{Points: points, Held: beta}
	f.Law, f.Objective = newProfile(points, beta).search(firstExponent, cmp.Or(beta, firstExponent))
	if list := f.Law.undetermined(); len(list) > 0 {
		if rule.close() { // more params, or more tokens, would not help
			list = []string{rule.reason()}
		}
		return nil, &PointsError{list}
	}
	return f, nil
}

// undetermined names the terms of a fitted law that the points do not determine.
func (l Law) undetermined() (list []string) {
	for _, c := range []struct {
		scale, exponent float64
		column          string
	}{{l.A, l.Alpha, "params"}, {l.B, l.Beta, "tokens"}} {
		switch {
		case !(c.scale > 0):
			list = append(list, "the losses do not fall with "+c.column+": use points that differ more in "+c.column)
		case !inside(c.exponent):
			list = append(list, "the losses do not fall with a power of "+c.column+
				": use points that differ more in "+c.column)
		}
	}
	return list
}

// Residual returns ln L − ln L(N, D) of a point: 0.01 is a loss of 1 % above the law.
func (f *Fit) Residual(p Point) float64 {
	p = p.withDefaults()
	return math.Log(p.Loss / f.Law.Loss(p.Params, p.worth()))
}

// Error returns the median size of the residuals.
func (f *Fit) Error() float64 {
	sizes := make([]float64, len(f.Points))
	for i, p := range f.Points {
		sizes[i] = math.Abs(f.Residual(p))
	}
	return percentile(sizes, 0.5)
}

// Reach returns the FLOPs, 6·N·D, of the largest training among the points.
func (f *Fit) Reach() float64 {
	most := 0.0
	for _, p := range f.Points {
		most = max(most, Training(p.Params, p.Tokens))
	}
	return most
}
