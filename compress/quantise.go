package compress

import "math"

// A Grid is the numbers that weights may have: multiples of a scale, −L to L with L = 2^(Bits−1) − 1. Every Group
// weights of a row have a scale of their own, stored in 16 bits.
type Grid struct {
	Bits  int // 2 to 8
	Group int // weights; the last group of a row may be shorter
}

// BitsPerWeight counts the weights and their scales.
func (g Grid) BitsPerWeight() float64 { return float64(g.Bits) + 16/float64(g.Group) }

func (g Grid) levels() float64 { return float64(int(1)<<(g.Bits-1) - 1) }

// scale returns the step of the grid for a group of weights, whose largest has the outermost number. It is 0 if all
// weights are.
func (g Grid) scale(w []float64) float64 {
	largest := 0.0
	for _, x := range w {
		largest = max(largest, math.Abs(x))
	}
	return largest / g.levels()
}

// round returns the number of the grid that is nearest to x.
func (g Grid) round(x, scale float64) float64 {
	if scale == 0 {
		return 0
	}
	return max(-g.levels(), min(math.RoundToEven(x/scale), g.levels())) * scale
}

// Nearest rounds every weight of w [rows, cols] to the nearest number of the grid.
func (g Grid) Nearest(w []float32, cols int) {
	group := make([]float64, 0, g.Group)
	for at := 0; at < len(w); at += cols {
		row := w[at : at+cols]
		for from := 0; from < cols; from += g.Group {
			part := row[from:min(from+g.Group, cols)]
			group = widened(group[:0], part)
			scale := g.scale(group)
			for i, x := range group {
				part[i] = float32(g.round(x, scale))
			}
		}
	}
}

func widened(dst []float64, src []float32) []float64 {
	for _, x := range src {
		dst = append(dst, float64(x))
	}
	return dst
}
