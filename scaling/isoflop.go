package scaling

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// ErrNoIsoFLOP describes the points that IsoFLOP needs.
var ErrNoIsoFLOP = errors.New("needs 2 budgets or more, each with 3 sizes or more of equal FLOPs around the best")

// equalFLOPs is the largest ratio of budgets within one profile.
const equalFLOPs = 0.05

// IsoFLOP finds compute-optimal sizes as approach 2 of Hoffmann et al. 2022: models of several sizes are trained with
// equal FLOPs, and the lowest point of a parabola through their losses over ln N is the best size for that budget.
//
// Its bias: the loss is not a parabola in ln N unless α = β. If sizes are far from the best one, or more of them are
// on one side, the lowest point moves. It moves more at one budget than at another, which changes the exponent (arXiv
// 2603.22339). Use sizes within a factor of about 3 around the best. Budgets whose lowest point is outside their sizes
// are left out.
func IsoFLOP(points []Point) (Frontier, error) {
	points, err := checked(points)
	if err != nil {
		return Frontier{}, err
	}
	sorted := slices.SortedFunc(slices.Values(points), func(a, b Point) int { return cmp.Compare(a.FLOPs, b.FLOPs) })
	sorted = slices.DeleteFunc(sorted, func(p Point) bool { return p.Unique < p.Tokens })
	var optima []Model
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && sorted[n].FLOPs <= (1+equalFLOPs)*sorted[0].FLOPs {
			n++
		}
		if m, ok := lowestOf(sorted[:n]); ok {
			optima = append(optima, m)
		}
		sorted = sorted[n:]
	}
	if len(optima) < 2 {
		return Frontier{}, ErrNoIsoFLOP
	}
	return through(optima), nil
}

// lowestOf returns the lowest point of the parabola through models of equal FLOPs. It fails if there are too few sizes
// or if the point is not between them.
func lowestOf(profile []Point) (Model, bool) {
	sizes := map[float64]bool{}
	var logN, flops float64
	small, large := math.Inf(1), 0.0
	for _, p := range profile {
		sizes[p.Params] = true
		logN += math.Log(p.Params) / float64(len(profile))
		flops += math.Log(p.FLOPs) / float64(len(profile))
		small, large = min(small, p.Params), max(large, p.Params)
	}
	if len(sizes) < 3 {
		return Model{}, false
	}
	var h [3]vec3 // normal equations of loss = c0 + c1·x + c2·x², x = ln N − logN
	var g vec3
	for _, p := range profile {
		x := math.Log(p.Params) - logN
		row := vec3{1, x, x * x}
		for j := range row {
			g[j] -= row[j] * p.Loss
			for k := range row {
				h[j][k] += row[j] * row[k]
			}
		}
	}
	c, ok := withBounds(g, h, vec3{}, 0)
	if !ok || !(c[2] > 0) {
		return Model{}, false
	}
	x := -c[1] / (2 * c[2])
	m := Model{Params: math.Exp(logN + x), FLOPs: math.Exp(flops), Loss: c[0] + x*c[1]/2}
	m.Tokens = m.FLOPs / flopsPerToken / m.Params
	return m, m.Params >= small && m.Params <= large
}
