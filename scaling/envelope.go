package scaling

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// A Frontier is a power law of the compute-optimal size: N* = Scale·C^Exponent. By C = 6·N·D the tokens grow with the
// exponent 1 − Exponent.
type Frontier struct {
	Exponent float64 `json:"exponent"`
	Scale    float64 `json:"scale"`
	Optima   []Model `json:"optima"` // the models that it is fitted to
}

// through fits a frontier to models by least squares on logarithms.
func through(optima []Model) Frontier {
	var x, y, xx, xy float64
	for _, m := range optima {
		x, y = x+math.Log(m.FLOPs)/float64(len(optima)), y+math.Log(m.Params)/float64(len(optima))
	}
	for _, m := range optima {
		dx := math.Log(m.FLOPs) - x
		xx, xy = xx+dx*dx, xy+dx*(math.Log(m.Params)-y)
	}
	a := xy / xx
	return Frontier{Exponent: a, Scale: math.Exp(y - a*x), Optima: optima}
}

// Params returns N* for a number of FLOPs.
func (f Frontier) Params(flops float64) float64 { return f.Scale * math.Pow(flops, f.Exponent) }

// ErrNoEnvelope describes the points that Envelope needs.
var ErrNoEnvelope = errors.New("needs 4 sizes or more, each with several numbers of tokens, whose FLOPs overlap")

// envelopeGrid is the number of budgets at which the envelope is sampled.
const envelopeGrid = 400

// Envelope finds compute-optimal sizes as approach 1 of Hoffmann et al. 2022: for each size the loss is a curve over
// FLOPs, and the size whose curve is lowest at a budget is the best for it.
//
// Its bias: only trained sizes can win, so the frontier has steps; and at both ends of the budgets the smallest or the
// largest model wins for lack of rivals. Budgets where the winner has no smaller or no larger rival are left out, and
// each size that remains counts once, in the middle of where it wins. Points of one run with a decaying rate, taken
// before its end, are too high and move the frontier; decay a branch for each point.
func Envelope(points []Point) (Frontier, error) {
	points, err := checked(points)
	if err != nil {
		return Frontier{}, err
	}
	curves := map[float64][]Point{}
	for _, p := range points {
		if p.Unique >= p.Tokens {
			curves[p.Params] = append(curves[p.Params], p)
		}
	}
	least, most := math.Inf(1), math.Inf(-1)
	for size, c := range curves {
		slices.SortFunc(c, func(a, b Point) int { return cmp.Compare(a.FLOPs, b.FLOPs) })
		if c[0].FLOPs == c[len(c)-1].FLOPs {
			delete(curves, size)
			continue
		}
		least, most = min(least, math.Log(c[0].FLOPs)), max(most, math.Log(c[len(c)-1].FLOPs))
	}
	type span struct{ from, to float64 }
	wins := map[float64]span{}
	for i := range envelopeGrid {
		c := least + (most-least)*(float64(i)+0.5)/envelopeGrid
		if size := winner(curves, c); size > 0 {
			s, seen := wins[size]
			if !seen {
				s.from = c
			}
			wins[size] = span{s.from, c}
		}
	}
	var optima []Model
	for size, s := range wins {
		c := (s.from + s.to) / 2
		flops := math.Exp(c)
		optima = append(optima, Model{
			Params: size, Tokens: flops / flopsPerToken / size, FLOPs: flops, Loss: lossAt(curves[size], c),
		})
	}
	if len(optima) < 2 {
		return Frontier{}, ErrNoEnvelope
	}
	slices.SortFunc(optima, func(a, b Model) int { return cmp.Compare(a.FLOPs, b.FLOPs) })
	return through(optima), nil
}

// winner returns the size with the lowest loss at a budget, given by its logarithm; 0 if the winner has no rival on
// one side.
func winner(curves map[float64][]Point, c float64) float64 {
	var best, smallest, largest float64
	lowest := math.Inf(1)
	for size, curve := range curves {
		loss := lossAt(curve, c)
		if math.IsNaN(loss) {
			continue
		}
		if smallest == 0 || size < smallest {
			smallest = size
		}
		largest = max(largest, size)
		if loss < lowest || loss == lowest && size < best {
			best, lowest = size, loss
		}
	}
	if best == smallest || best == largest {
		return 0
	}
	return best
}

// lossAt returns the loss of a curve at a budget, by linear interpolation of logarithms; NaN outside the curve.
func lossAt(curve []Point, c float64) float64 {
	for i := 1; i < len(curve); i++ {
		a, b := math.Log(curve[i-1].FLOPs), math.Log(curve[i].FLOPs)
		if a <= c && c <= b && a < b {
			t := (c - a) / (b - a)
			return math.Exp((1-t)*math.Log(curve[i-1].Loss) + t*math.Log(curve[i].Loss))
		}
	}
	return math.NaN()
}
