package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours that people with any colour vision tell apart (Okabe & Ito 2008); dashes and shapes differ as well.
var (
	colours = []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255}, {230, 159, 0, 255}, {80, 80, 80, 255}}
	dashes  = [][]vg.Length{nil, {6, 3}, {1.5, 2.5}, {8, 3, 1.5, 3}}
	shapes  = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.TriangleGlyph{}, draw.SquareGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}}
	shade   = color.RGBA{236, 236, 224, 255}
	grid    = color.RGBA{225, 225, 225, 255}
)

// The size of a picture, in points.
const svgWidth, svgHeight = 520, 340

// SVG writes the chart as a picture that scales to any size.
func (c *Chart) SVG(w io.Writer) error {
	x, y := c.scales()
	p := plot.New()
	p.Title.Text, p.Title.Padding = c.Title, 8
	p.Title.TextStyle.Font = sans(12)
	dress(&p.X, c.X, x, 8)
	dress(&p.Y, c.Y, y, 6)
	for _, b := range c.Bands {
		if err := addBand(p, b, x, y); err != nil {
			return err
		}
	}
	p.Add(rules{})
	for i, s := range c.Series {
		if err := addSeries(p, s, i, x, y); err != nil {
			return err
		}
	}
	for i, m := range c.Marks {
		if err := addMark(p, m, i, x, y); err != nil {
			return err
		}
	}
	p.Legend.TextStyle.Font = sans(9)
	p.Legend.Padding, p.Legend.ThumbnailWidth = 2, 24
	p.Legend.Top, p.Legend.Left = c.emptiestCorner(x, y)
	p.Legend.XOffs, p.Legend.YOffs = -6, 6 // away from the frame
	if p.Legend.Left {
		p.Legend.XOffs = 6
	}
	if p.Legend.Top {
		p.Legend.YOffs = -4
	}
	canvas := vgsvg.New(svgWidth, svgHeight)
	area := draw.New(canvas)
	p.Draw(draw.Crop(area, 8, -14, 8, -8))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return fmt.Errorf("cannot draw the chart: %w", err)
	}
	// The picture names one font; readers may have others.
	_, err := w.Write(bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

func sans(size font.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// dress gives one of the plot's axes its text, range and ticks.
func dress(to *plot.Axis, a Axis, s scale, want int) {
	to.Label.Text, to.Label.TextStyle.Font, to.Tick.Label.Font = a.Label, sans(10), sans(9)
	to.Label.Padding, to.Padding = 4, 0
	to.Min, to.Max = s.min, s.max
	if s.log {
		to.Scale = plot.LogScale{}
	}
	var list plot.ConstantTicks
	for _, v := range a.ticks(s, want) {
		list = append(list, plot.Tick{Value: v, Label: Number(v)})
	}
	to.Tick.Marker = list
}

// rules draws a thin line across the plot at every tick.
type rules struct{}

// Plot implements plot.Plotter.
func (rules) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	style := draw.LineStyle{Color: grid, Width: 0.5}
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		c.StrokeLine2(style, toX(t.Value), c.Min.Y, toX(t.Value), c.Max.Y)
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		c.StrokeLine2(style, c.Min.X, toY(t.Value), c.Max.X, toY(t.Value))
	}
}

func addBand(p *plot.Plot, b Band, x, y scale) error {
	if !x.has(b.From) || !x.has(b.To) {
		return nil
	}
	from, to := max(min(b.From, b.To), x.min), min(max(b.From, b.To), x.max)
	if from > to {
		return nil
	}
	area, err := plotter.NewPolygon(plotter.XYs{{X: from, Y: y.min}, {X: to, Y: y.min}, {X: to, Y: y.max}, {X: from, Y: y.max}})
	if err != nil {
		return fmt.Errorf("band %q: %w", b.Name, err)
	}
	area.Color, area.LineStyle = shade, draw.LineStyle{}
	p.Add(fixed{area})
	if b.Name != "" {
		p.Legend.Add(" "+b.Name+" ", area)
	}
	return nil
}

func addSeries(p *plot.Plot, s Series, i int, x, y scale) error {
	var thumbs []plot.Thumbnailer
	for n, piece := range s.pieces(x, y) {
		points := make(plotter.XYs, 0, piece[1]-piece[0])
		for k := piece[0]; k < piece[1]; k++ {
			points = append(points, plotter.XY{X: s.X[k], Y: s.Y[k]})
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("series %q: %w", s.Name, err)
		}
		line.LineStyle = draw.LineStyle{Color: colours[i%len(colours)], Width: 1.4, Dashes: dashes[i%len(dashes)]}
		dots.GlyphStyle = draw.GlyphStyle{Color: colours[i%len(colours)], Radius: 2.2, Shape: shapes[i%len(shapes)]}
		alone := len(points) == 1 && s.Style == Line // a line of one point would not be seen
		if s.Style == Dots {
			dots.Radius, dots.Shape = 1.1, draw.CircleGlyph{}
		}
		if s.Style == Line || s.Style == Both {
			p.Add(fixed{line})
			if n == 0 {
				thumbs = append(thumbs, line)
			}
		}
		if s.Style != Line || alone {
			p.Add(fixed{dots})
			if n == 0 {
				thumbs = append(thumbs, dots)
			}
		}
	}
	if s.Name != "" && thumbs != nil {
		p.Legend.Add(" "+s.Name+" ", thumbs...)
	}
	return nil
}

func addMark(p *plot.Plot, m Mark, i int, x, y scale) error {
	if !x.has(m.X) || !y.has(m.Y) {
		return nil
	}
	dot, err := plotter.NewScatter(plotter.XYs{{X: m.X, Y: m.Y}})
	if err != nil {
		return fmt.Errorf("mark %q: %w", m.Name, err)
	}
	dot.GlyphStyle = draw.GlyphStyle{Color: color.Black, Radius: 4, Shape: []draw.GlyphDrawer{draw.RingGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}}[i%4]}
	p.Add(fixed{dot})
	if m.Name != "" {
		p.Legend.Add(" "+m.Name+" ", dot)
	}
	return nil
}

// fixed draws without a say in the range of the axes.
type fixed struct{ plot.Plotter }

// emptiestCorner returns where a legend covers the fewest points.
func (c *Chart) emptiestCorner(x, y scale) (top, left bool) {
	count := map[[2]bool]int{}
	for _, s := range c.Series {
		for i := range s.X {
			if !x.has(s.X[i]) || !y.has(s.Y[i]) {
				continue
			}
			px, py := x.at(s.X[i]), y.at(s.Y[i])
			if (px < 0.45 || px > 0.55) && (py < 0.35 || py > 0.65) {
				count[[2]bool{py > 0.5, px < 0.5}]++
			}
		}
	}
	best := [2]bool{true, false}
	for _, corner := range [][2]bool{{true, true}, {false, false}, {false, true}} {
		if count[corner] < count[best] {
			best = corner
		}
	}
	return best[0], best[1]
}
