package chart

import "anneal/internal/svg"

// A shape adds a point to a path: something about 2r wide around (x, y).
type shape func(path *svg.Path, x, y, r float64)

// The shapes of the points of series, and of marks.
var (
	shapes     = []shape{circle, triangle, square, diamond, plus, cross}
	markShapes = []shape{circle, square, triangle, cross}
)

func circle(path *svg.Path, x, y, r float64) { path.Circle(x, y, r) }

func triangle(path *svg.Path, x, y, r float64) {
	path.Move(x, y-1.15*r)
	path.Line(x+1.1*r, y+0.85*r)
	path.Line(x-1.1*r, y+0.85*r)
	path.Close()
}

func square(path *svg.Path, x, y, r float64) { path.Rect(x-0.9*r, y-0.9*r, 1.8*r, 1.8*r) }

func diamond(path *svg.Path, x, y, r float64) {
	path.Move(x, y-1.2*r)
	path.Line(x+1.2*r, y)
	path.Line(x, y+1.2*r)
	path.Line(x-1.2*r, y)
	path.Close()
}

func plus(path *svg.Path, x, y, r float64) {
	path.Move(x-1.1*r, y)
	path.Line(x+1.1*r, y)
	path.Move(x, y-1.1*r)
	path.Line(x, y+1.1*r)
}

func cross(path *svg.Path, x, y, r float64) {
	path.Move(x-0.9*r, y-0.9*r)
	path.Line(x+0.9*r, y+0.9*r)
	path.Move(x-0.9*r, y+0.9*r)
	path.Line(x+0.9*r, y-0.9*r)
}
