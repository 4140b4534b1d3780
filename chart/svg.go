package chart

import (
	"fmt"
	"io"
	"math"
	"slices"

	"anneal/internal/svg"
)

// The colours can be told apart with any colour vision (Okabe & Ito 2008); dashes and shapes differ as well.
var (
	colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#505050"}
	dashes  = []string{"", "8 4", "2 3", "10 4 2 4"}
)

// The size of a picture and of its text, in pixels. A legend without a free corner makes the picture higher.
const (
	svgWidth, svgHeight             = 690, 450
	titleSize, labelSize, smallSize = 16.0, 13.0, 12.0
	lineWide                        = 1.9
)

// A frame is the part of a picture that shows the data, with the scales of its axes.
type frame struct {
	left, top, right, bottom float64
	x, y                     scale
}

// at returns the place in the picture of a point given as fractions of the axes.
func (f *frame) at(px, py float64) (x, y float64) {
	return f.left + px*(f.right-f.left), f.bottom - py*(f.bottom-f.top)
}

// SVG writes the chart as a picture that scales to any size.
func (c *Chart) SVG(w io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	var p svg.Picture
	x, y := c.scales()
	xTicks, yTicks := c.X.ticks(x, 8), c.Y.ticks(y, 6)
	f := &frame{left: 40, top: 16, right: svgWidth - 20, bottom: svgHeight - 48, x: x, y: y}
	wide := 0.0
	for _, v := range yTicks {
		wide = max(wide, svg.Width(Number(v), smallSize))
	}
	f.left += wide
	if c.Title != "" {
		f.top = 42
		p.Text((f.left+f.right)/2, 26, c.Title, fmt.Sprintf(`text-anchor="middle" font-size="%.3g"`,
			min(titleSize, titleSize*620/svg.Width(c.Title, titleSize))))
	}
	for _, b := range c.Bands {
		b.svg(&p, f)
	}
	drawAxes(&p, f, xTicks, yTicks)
	p.Text((f.left+f.right)/2, f.bottom+39, c.X.Label, fmt.Sprintf(`text-anchor="middle" font-size="%g"`, labelSize))
	p.Text(0, 0, c.Y.Label, fmt.Sprintf(`text-anchor="middle" font-size="%g" transform="translate(18 %g) rotate(-90)"`,
		labelSize, (f.top+f.bottom)/2))
	for i, s := range c.Series {
		s.band(&p, f, i)
	}
	for i, s := range c.Series {
		s.svg(&p, f, i)
	}
	for i, m := range c.Marks {
		if x.has(m.X) && y.has(m.Y) && inside(x.at(m.X), y.at(m.Y)) {
			px, py := f.at(x.at(m.X), y.at(m.Y))
			drawMark(&p, i, px, py)
		}
	}
	more := c.drawLegend(&p, f)
	return p.WriteTo(w, svgWidth, svgHeight+more)
}

// drawAxes draws a thin line across the frame at every tick, with its value, and the axes.
func drawAxes(p *svg.Picture, f *frame, xTicks, yTicks []float64) {
	var grid, axes svg.Path
	p.Group(fmt.Sprintf(`font-size="%g" text-anchor="middle"`, smallSize), func() {
		end := 0.0 // of the previous label
		for _, v := range xTicks {
			x, _ := f.at(f.x.at(v), 0)
			grid.Move(x, f.top)
			grid.Line(x, f.bottom)
			axes.Move(x, f.bottom)
			axes.Line(x, f.bottom+5)
			if half := svg.Width(Number(v), smallSize) / 2; x-half > end {
				p.Text(x, f.bottom+18, Number(v), "")
				end = x + half + 4
			}
		}
	})
	p.Group(fmt.Sprintf(`font-size="%g" text-anchor="end"`, smallSize), func() {
		for _, v := range yTicks {
			_, y := f.at(0, f.y.at(v))
			grid.Move(f.left, y)
			grid.Line(f.right, y)
			axes.Move(f.left-5, y)
			axes.Line(f.left, y)
			p.Text(f.left-8, y+0.35*smallSize, Number(v), "")
		}
	})
	p.Path(&grid, `stroke="#e1e1e1" stroke-width="0.7"`)
	axes.Move(f.left, f.top)
	axes.Line(f.left, f.bottom)
	axes.Line(f.right, f.bottom)
	p.Path(&axes, `fill="none" stroke="#555"`)
}

func (b Band) svg(p *svg.Picture, f *frame) {
	if !f.x.has(b.From) || !f.x.has(b.To) {
		return
	}
	from, to := f.x.at(min(b.From, b.To)), f.x.at(max(b.From, b.To))
	if from > 1 || to < 0 {
		return
	}
	left, _ := f.at(max(from, 0), 0)
	right, _ := f.at(min(to, 1), 0)
	p.Rect(left, f.top, right-left, f.bottom-f.top, bandStyle)
}

const bandStyle = `fill="#ecece0"`

// band fills what lies between the edges of a series' band.
func (s Series) band(p *svg.Picture, f *frame, i int) {
	edge := Series{X: s.X[:len(s.Low)], Y: slices.Clone(s.Low)}
	for k, high := range s.High {
		if !f.y.has(high) {
			edge.Y[k] = math.NaN()
		}
	}
	inFrame := func(v float64) float64 { return min(max(v, 0), 1) }
	at := func(k int, v float64) (x, y float64) { return f.at(inFrame(f.x.at(s.X[k])), inFrame(f.y.at(v))) }
	for _, piece := range edge.pieces(f.x, f.y) {
		var area svg.Path
		area.Move(at(piece[0], s.Low[piece[0]]))
		for k := piece[0] + 1; k < piece[1]; k++ {
			area.Line(at(k, s.Low[k]))
		}
		for k := piece[1] - 1; k >= piece[0]; k-- {
			area.Line(at(k, s.High[k]))
		}
		p.Path(&area, fmt.Sprintf(`fill="%s" fill-opacity="0.15"`, colours[i%len(colours)]))
	}
}

func (s Series) svg(p *svg.Picture, f *frame, i int) {
	var line, points svg.Path
	for _, piece := range s.pieces(f.x, f.y) {
		for k := piece[0]; k < piece[1]; k++ {
			px, py := f.x.at(s.X[k]), f.y.at(s.Y[k])
			if k > piece[0] && (s.Style == Line || s.Style == Both) {
				f.segment(&line, f.x.at(s.X[k-1]), f.y.at(s.Y[k-1]), px, py, k-1 == piece[0])
			}
			alone := s.Style == Line && piece[1]-piece[0] == 1 // a line of one point would be invisible
			if (s.Style != Line || alone) && inside(px, py) {
				x, y := f.at(px, py)
				s.point(&points, i, x, y)
			}
		}
	}
	p.Path(&line, s.stroke(i))
	p.Path(&points, s.fill(i))
}

// segment adds the part of a line between two points that is within the frame. It continues the path if it can.
func (f *frame) segment(path *svg.Path, x0, y0, x1, y1 float64, first bool) {
	from, to, ok := clip(x0, y0, x1, y1)
	if !ok {
		return
	}
	if first || from > 0 || !inside(x0, y0) {
		path.Move(f.at(x0+from*(x1-x0), y0+from*(y1-y0)))
	}
	path.Line(f.at(x0+to*(x1-x0), y0+to*(y1-y0)))
}

// inside reports whether a point given as fractions of the axes is within the frame.
func inside(px, py float64) bool { return px >= 0 && px <= 1 && py >= 0 && py <= 1 }

// stroke returns the attributes of the line of series i, fill those of its points.
func (s Series) stroke(i int) string {
	style := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="%g" stroke-linejoin="round"`,
		colours[i%len(colours)], lineWide)
	if d := dashes[i%len(dashes)]; d != "" {
		style += ` stroke-dasharray="` + d + `"`
	}
	return style
}

func (s Series) fill(i int) string {
	colour := colours[i%len(colours)]
	if s.Style == Dots || i%len(shapes) == 0 {
		return fmt.Sprintf(`fill="%s"`, colour)
	}
	return fmt.Sprintf(`fill="#fff" stroke="%s" stroke-width="1.2"`, colour)
}

// point adds a point of series i.
func (s Series) point(path *svg.Path, i int, x, y float64) {
	switch s.Style {
	case Dots:
		path.Circle(x, y, 1.5)
	case Line:
		path.Circle(x, y, 3)
	default:
		shapes[i%len(shapes)](path, x, y, 3)
	}
}

func drawMark(p *svg.Picture, i int, x, y float64) {
	var path svg.Path
	markShapes[i%len(markShapes)](&path, x, y, 5)
	fill := "#000"
	if i%len(markShapes) == 0 {
		fill = "none"
	}
	p.Path(&path, fmt.Sprintf(`fill="%s" stroke="#000" stroke-width="1.2"`, fill))
}
