package compress

import (
	"fmt"
	"math"
)

// A Grid is the set of numbers that weights may have: multiples of a scale, −L to L with L = 2^(Bits−1) − 1. Every
// Group weights of a row have a scale of their own. It is not rounded, though a format would store it in 16 bits: in
// FP16 that moves a weight by at most 1/2048 of itself, and a step of 8 bits is 1/127 of the largest.
type Grid struct {
	Bits  int // 2 to 8
	Group int // weights; the last group of a row may be shorter
}

// check panics unless the grid exists: a loop over its groups would never end.
func (g Grid) check() {
	if g.Bits < 2 || g.Bits > 8 || g.Group < 1 {
		panic(fmt.Sprintf("compress: a grid of %d bits in groups of %d weights: bits are 2 to 8, groups have 1 or more",
			g.Bits, g.Group))
	}
}

// checkRows panics unless n weights are whole rows of cols.
func checkRows(n, cols int) {
	if cols < 1 || n%cols != 0 {
		panic(fmt.Sprintf("compress: %d weights are not whole rows of %d", n, cols))
	}
}

// MatrixBits returns how many bits a matrix takes, with a scale of 16 bits for each group.
func (g Grid) MatrixBits(rows, cols int) int64 {
	g.check()
	groups := (cols + g.Group - 1) / g.Group
	return int64(rows) * int64(cols*g.Bits+16*groups)
}

func (g Grid) levels() float64 { return float64(int(1)<<(g.Bits-1) - 1) }

// scale returns the step of the grid for a group of weights: the largest weight gets the outermost number. The step is
// 0 if all weights are 0.
func (g Grid) scale(w []float64) float64 {
	largest := 0.0
	for _, x := range w {
		largest = max(largest, math.Abs(x))
	}
	return largest / g.levels()
}

// round returns the number of the grid nearest to x.
func (g Grid) round(x, scale float64) float64 {
	if scale == 0 {
		return 0
	}
	return max(-g.levels(), min(math.RoundToEven(x/scale), g.levels())) * scale
}

// Nearest rounds every weight of w [rows, cols] to the nearest number of the grid.
func (g Grid) Nearest(w []float32, cols int) {
	g.check()
	checkRows(len(w), cols)
	group := make([]float64, 0, min(g.Group, cols))
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
