package chart

import (
	"fmt"

	"anneal/internal/svg"
)

// The measures of a legend in pixels: the height of a row, the width of its symbol, the padding.
const rowHigh, signWide, legendPad = 16.0, 34.0, 6.0

// An entry is a row of a legend: a name and a function that draws its symbol around a point.
type entry struct {
	name string
	sign func(p *svg.Picture, x, y float64)
}

// drawLegend draws the legend in a corner of the frame where it covers no data, else below the axis in columns. It
// returns by how much the picture has to grow.
func (c *Chart) drawLegend(p *svg.Picture, f *frame) float64 {
	entries := c.entries(f)
	if len(entries) == 0 {
		return 0
	}
	wide := 0.0
	for _, e := range entries {
		wide = max(wide, svg.Width(e.name, smallSize))
	}
	wide, high := wide+signWide+2*legendPad, rowHigh*float64(len(entries))+legendPad
	const away = 6 // from the frame
	columns := min(max(int((f.right-f.left)/wide), 1), len(entries))
	rows := (len(entries) + columns - 1) / columns
	left, top, more := f.left+away, float64(svgHeight), rowHigh*float64(rows)+2*legendPad
	for _, corner := range [][2]float64{
		{f.right - away - wide, f.top + away}, {f.left + away, f.top + away},
		{f.right - away - wide, f.bottom - away - high}, {f.left + away, f.bottom - away - high},
	} {
		if !c.covers(f, corner[0], corner[1], wide, high) {
			left, top, rows, more = corner[0], corner[1], len(entries), 0
			p.Rect(left, top, wide, high, `fill="#fff" fill-opacity="0.85"`)
			break
		}
	}
	p.Group(fmt.Sprintf(`font-size="%g"`, smallSize), func() {
		for i, e := range entries {
			x, y := left+legendPad+float64(i/rows)*wide, top+legendPad/2+(float64(i%rows)+0.5)*rowHigh
			e.sign(p, x+signWide/2-4, y)
			p.Text(x+signWide, y+0.35*smallSize, e.name, "")
		}
	})
	return more
}

// entries lists the named bands, series and marks in the picture.
func (c *Chart) entries(f *frame) (list []entry) {
	for _, b := range c.Bands {
		if b.Name != "" && f.x.has(b.From) && f.x.has(b.To) {
			list = append(list,
				entry{b.Name, func(p *svg.Picture, x, y float64) { p.Rect(x-13, y-5, 26, 10, bandStyle) }})
		}
	}
	for i, s := range c.Series {
		if s.Name == "" || s.pieces(f.x, f.y) == nil {
			continue
		}
		list = append(list, entry{s.Name, func(p *svg.Picture, x, y float64) {
			var line, point svg.Path
			if s.Style == Line || s.Style == Both {
				line.Move(x-13, y)
				line.Line(x+13, y)
			}
			if s.Style != Line {
				s.point(&point, i, x, y)
			}
			p.Path(&line, s.stroke(i))
			p.Path(&point, s.fill(i))
		}})
	}
	for i, m := range c.Marks {
		if m.Name != "" && f.x.has(m.X) && f.y.has(m.Y) {
			list = append(list, entry{m.Name, func(p *svg.Picture, x, y float64) { drawMark(p, i, x, y) }})
		}
	}
	return list
}

// covers reports whether any data would be behind a rectangle of the picture.
func (c *Chart) covers(f *frame, left, top, wide, high float64) bool {
	if left < f.left || top < f.top {
		return true // it is larger than the frame
	}
	// in units of the rectangle, which clip expects
	at := func(vx, vy float64) (x, y float64) {
		x, y = f.at(f.x.at(vx), f.y.at(vy))
		return (x - left) / wide, (y - top) / high
	}
	for _, s := range c.Series {
		for _, piece := range s.pieces(f.x, f.y) {
			for k := piece[0]; k < piece[1]; k++ {
				x1, y1 := at(s.X[k], s.Y[k])
				x0, y0 := x1, y1
				if k > piece[0] && (s.Style == Line || s.Style == Both) {
					x0, y0 = at(s.X[k-1], s.Y[k-1])
				}
				if _, _, hit := clip(x0, y0, x1, y1); hit {
					return true
				}
			}
		}
	}
	for _, m := range c.Marks {
		if f.x.has(m.X) && f.y.has(m.Y) {
			if x, y := at(m.X, m.Y); inside(x, y) {
				return true
			}
		}
	}
	return false
}
