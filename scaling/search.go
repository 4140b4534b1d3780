package scaling

import (
	"fmt"
	"math"
)

// The exponents that are searched. Published ones are between 0.2 and 0.7.
const lowest, highest = 0.01, 5

// CheckBeta returns an error if β cannot be held at the given number; 0 means that it is not held.
func CheckBeta(beta float64) error {
	if beta != 0 && !inside(beta) {
		return fmt.Errorf("β cannot be held at %g, must be above %g and below %g\n  try 0.37 or 0.28, which are "+
			"published, or 0 to fit it", beta, lowest, float64(highest))
	}
	return nil
}

// inside reports whether an exponent is within the bounds of the search. An exponent at a bound is not determined by
// the points.
func inside(exponent float64) bool { return exponent >= lowest*1.001 && exponent <= highest/1.001 }

// A profile is the objective as a function of the exponents alone, with the best E, A and B for each pair. N and D are
// divided by their geometric means, so that the columns of the linear fit have similar sizes.
type profile struct {
	linear
	logN, logD   []float64
	meanN, meanD float64 // of ln N, ln D
	theta        vec3    // the last solution, where the next one starts
	held         bool    // β stays as it is
}

// newProfile returns the profile of points, for every β or, if that is not 0, for one.
func newProfile(points []Point, beta float64) *profile {
	p := &profile{held: beta != 0}
	for _, x := range points {
		p.logN = append(p.logN, math.Log(x.Params))
		p.logD = append(p.logD, math.Log(x.worth()))
		p.logs = append(p.logs, math.Log(x.Loss))
	}
	p.rows = make([]vec3, len(points))
	p.meanN, p.meanD = centre(p.logN), centre(p.logD)
	loss := 0.0
	for _, y := range p.logs {
		loss += math.Exp(y) / float64(len(p.logs))
	}
	p.theta = vec3{0.6 * loss, 0.2 * loss, 0.2 * loss}
	return p
}

// centre subtracts the mean, and returns it.
func centre(x []float64) float64 {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for i := range x {
		x[i] -= mean
	}
	return mean
}

// at returns the objective for exponents, and its derivatives by ln α and ln β. The derivatives need no terms for E, A
// and B, because the objective is stationary in those.
func (p *profile) at(u [2]float64) (f float64, slope [2]float64) {
	alpha, beta := math.Exp(u[0]), math.Exp(u[1])
	for i := range p.rows {
		p.rows[i] = vec3{1, math.Exp(-alpha * p.logN[i]), math.Exp(-beta * p.logD[i])}
	}
	p.theta, f = p.solve(p.theta)
	for i, x := range p.rows {
		fitted := x[0]*p.theta[0] + x[1]*p.theta[1] + x[2]*p.theta[2]
		r := p.logs[i] - math.Log(fitted)
		r = max(min(r, huberDelta), -huberDelta) / fitted
		slope[0] += r * p.theta[1] * x[1] * p.logN[i] * alpha
		slope[1] += r * p.theta[2] * x[2] * p.logD[i] * beta
	}
	if p.held {
		slope[1] = 0 // so no step changes it
	}
	return f, slope
}

// search returns the law of the lowest objective, by the quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno
// on the logarithms of the exponents.
func (p *profile) search(alpha, beta float64) (Law, float64) {
	const exact, mostSteps = 1e-13, 100
	u := [2]float64{math.Log(alpha), math.Log(beta)}
	f, g := p.at(u)
	inverse, fresh := [2][2]float64{}, true // of the Hessian
	for range mostSteps {
		if fresh { // a first step of a tenth
			size := 0.1 / max(math.Hypot(g[0], g[1]), 1e-300)
			inverse = [2][2]float64{{size, 0}, {0, size}}
		}
		var d [2]float64
		for j := range d {
			d[j] = -inverse[j][0]*g[0] - inverse[j][1]*g[1]
			d[j] = max(min(d[j], 1), -1)
		}
		descent := g[0]*d[0] + g[1]*d[1]
		next, nextF, nextG, better := p.along(u, d, f, descent)
		if !better || f-nextF <= exact*f {
			if better {
				u, f, g = next, nextF, nextG
			}
			if fresh {
				break
			}
			fresh = true
			continue
		}
		s := [2]float64{next[0] - u[0], next[1] - u[1]}
		y := [2]float64{nextG[0] - g[0], nextG[1] - g[1]}
		fresh = !update(&inverse, s, y, fresh)
		u, f, g = next, nextF, nextG
	}
	f, _ = p.at(u)
	law := Law{Alpha: math.Exp(u[0]), Beta: math.Exp(u[1])}
	law.E = p.theta[0]
	law.A = p.theta[1] * math.Exp(law.Alpha*p.meanN)
	law.B = p.theta[2] * math.Exp(law.Beta*p.meanD)
	return law, f
}

// along halves a step until it is better, within the exponents that are searched.
func (p *profile) along(u, d [2]float64, f, descent float64) (next [2]float64, g float64, slope [2]float64, ok bool) {
	for t := 1.0; t > 1e-12; t /= 2 {
		for j := range u {
			next[j] = max(min(u[j]+t*d[j], math.Log(highest)), math.Log(lowest))
		}
		if next == u {
			break
		}
		if g, slope = p.at(next); g <= f+1e-4*t*descent && g < f {
			return next, g, slope, true
		}
	}
	return u, f, slope, false
}

// update applies the BFGS formula to the inverse of a Hessian, for a step s over which the gradient changed by y. It
// reports whether the curvature was positive.
func update(inverse *[2][2]float64, s, y [2]float64, fresh bool) bool {
	sy := s[0]*y[0] + s[1]*y[1]
	if !(sy > 0) {
		return false
	}
	if fresh {
		scale := sy / (y[0]*y[0] + y[1]*y[1])
		*inverse = [2][2]float64{{scale, 0}, {0, scale}}
	}
	var hy [2]float64
	for j := range hy {
		hy[j] = inverse[j][0]*y[0] + inverse[j][1]*y[1]
	}
	yhy := y[0]*hy[0] + y[1]*hy[1]
	for j := range 2 {
		for k := range 2 {
			inverse[j][k] += (1+yhy/sy)*s[j]*s[k]/sy - (hy[j]*s[k]+s[j]*hy[k])/sy
		}
	}
	return true
}
