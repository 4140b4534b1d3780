package scaling

import "math"

// huberDelta is the size above which a residual of ln L counts linearly instead of squared: 0.1 % of the loss, as in
// Hoffmann et al. 2022. Nearly all noise is above it, so the fit is close to least absolute deviations, which outliers
// hardly move.
const huberDelta = 1e-3

func huber(r float64) float64 {
	if r = math.Abs(r); r > huberDelta {
		return huberDelta * (r - huberDelta/2)
	}
	return r * r / 2
}

// vec3 holds E, A and B of a law.
type vec3 [3]float64

// A linear is the fit for given exponents, where the loss is linear in the other parameters: L = X·θ with the rows (1,
// N^−α, D^−β) and θ = (E, A, B) ≥ 0.
type linear struct {
	rows []vec3
	logs []float64 // ln L
}

// objective returns the sum of Huber losses of ln L.
func (l *linear) objective(theta vec3) float64 {
	sum := 0.0
	for i, x := range l.rows {
		sum += huber(l.logs[i] - math.Log(x[0]*theta[0]+x[1]*theta[1]+x[2]*theta[2]))
	}
	return sum
}

// model returns the gradient and the Hessian of the objective. It also returns the Hessian of the parabola that
// touches the objective from above, as in iteratively reweighted least squares.
func (l *linear) model(theta vec3) (gradient vec3, hessian, above [3]vec3) {
	for i, x := range l.rows {
		p := x[0]*theta[0] + x[1]*theta[1] + x[2]*theta[2]
		r := l.logs[i] - math.Log(p)
		slope, curve, weight := r, 1+r, 1.0
		if math.Abs(r) > huberDelta {
			slope = math.Copysign(huberDelta, r)
			curve, weight = slope, huberDelta/math.Abs(r)
		}
		for j := range x {
			gradient[j] -= slope * x[j] / p
			for k := 0; k <= j; k++ {
				product := x[j] * x[k] / (p * p)
				hessian[j][k] += curve * product
				above[j][k] += weight * product
			}
		}
	}
	for j := range 3 {
		for k := range j {
			hessian[k][j], above[k][j] = hessian[j][k], above[j][k]
		}
	}
	return gradient, hessian, above
}

// solve returns the θ of the lowest objective, by Newton steps that are damped by the parabola above (Levenberg and
// Marquardt), each within θ ≥ 0.
func (l *linear) solve(theta vec3) (vec3, float64) {
	const exact, mostSteps = 1e-14, 200
	f, damping := l.objective(theta), 1e-3
	gradient, hessian, above := l.model(theta)
	for range mostSteps {
		quadratic := hessian
		for j := range 3 {
			for k := range 3 {
				quadratic[j][k] += damping * above[j][k]
			}
		}
		step, gain, ok := within(gradient, quadratic, theta)
		if ok && gain <= exact*f && damping <= 1 {
			break
		}
		next := theta
		for j := range 3 {
			next[j] = max(theta[j]+step[j], 0)
		}
		if ok {
			if g := l.objective(next); g < f {
				theta, f, damping = next, g, max(damping/10, 1e-9)
				gradient, hessian, above = l.model(theta)
				continue
			}
		}
		if damping *= 10; damping > 1e9 {
			break // no step is better
		}
	}
	return theta, f
}

// within returns the step d that minimises g·d + d·H·d/2 with θ + d ≥ 0, and its gain. It tries all sets of active
// bounds; if H is positive definite, one of them meets the Karush–Kuhn–Tucker conditions. ok is false if none does.
func within(g vec3, h [3]vec3, theta vec3) (d vec3, gain float64, ok bool) {
	const choices = 1 << 3
	for bound := range choices {
		d, solved := withBounds(g, h, theta, bound)
		if !solved {
			continue
		}
		valid := true
		for j := range 3 {
			slope := g[j] + h[j][0]*d[0] + h[j][1]*d[1] + h[j][2]*d[2]
			gain -= d[j] * (g[j] + slope) / 2
			if isBound := bound>>j&1 == 1; isBound && slope < 0 || !isBound && theta[j]+d[j] < 0 {
				valid = false
			}
		}
		if valid {
			return d, gain, true
		}
		gain = 0
	}
	return vec3{}, 0, false
}

// withBounds solves H·d = −g for the elements without an active bound; d is −θ for the others. It fails if H is not
// positive definite.
func withBounds(g vec3, h [3]vec3, theta vec3, bound int) (d vec3, ok bool) {
	var lower [3]vec3 // Cholesky factor, with 1 on the diagonal for bound elements
	var y vec3
	for j := range 3 {
		if bound>>j&1 == 1 {
			d[j], lower[j][j] = -theta[j], 1
		}
	}
	for j := range 3 {
		if bound>>j&1 == 1 {
			continue
		}
		y[j] = -g[j]
		for k := range 3 {
			if bound>>k&1 == 1 {
				y[j] -= h[j][k] * d[k]
			}
		}
		for k := 0; k <= j; k++ {
			if bound>>k&1 == 1 {
				continue
			}
			sum := h[j][k]
			for i := range k {
				sum -= lower[j][i] * lower[k][i]
			}
			if k < j {
				lower[j][k] = sum / lower[k][k]
			} else if !(sum > 1e-13*h[j][j]) {
				return d, false
			} else {
				lower[j][j] = math.Sqrt(sum)
			}
		}
		for k := range j {
			y[j] -= lower[j][k] * y[k]
		}
		y[j] /= lower[j][j]
	}
	for j := 2; j >= 0; j-- {
		if bound>>j&1 == 1 {
			continue
		}
		for k := j + 1; k < 3; k++ {
			if bound>>k&1 == 0 {
				y[j] -= lower[k][j] * y[k]
			}
		}
		y[j] /= lower[j][j]
		d[j] = y[j]
	}
	return d, true
}
