package chart

import "math"

// canvas is a raster of braille cells, each 2 dots wide and 4 high. Characters may cover cells.
type canvas struct {
	wide, high int
	dots       []uint8 // [high·wide] the pattern of each cell
	over       []rune  // [high·wide] the character over a cell; 0 if its dots show
}

func newCanvas(wide, high int) *canvas {
	return &canvas{wide, high, make([]uint8, wide*high), make([]rune, wide*high)}
}

// bits of the dots of a cell, [row][column], in the order of the Unicode block.
var bits = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// strokes are the line patterns of series: whether dot n of a line is drawn.
var strokes = []func(n int) bool{
	func(int) bool { return true },
	func(n int) bool { return n%6 < 4 },
	func(n int) bool { return n%3 == 0 },
	func(n int) bool { return n%8 < 5 && n%8 != 3 },
}

// sample is a cell of the pattern of a series, for the legend.
func sample(i int) rune { return []rune{'⠒', '⠂', '⠐', '⠢'}[i%len(strokes)] }

// series draws a line or points; lettered ones carry the letter of the series.
func (c *canvas) series(s Series, i int, lettered bool, x, y scale) {
	for _, piece := range s.pieces(x, y) {
		n := 0
		for k := piece[0]; k < piece[1]; k++ {
			px, py := x.at(s.X[k]), y.at(s.Y[k])
			switch {
			case s.Style == Points:
				c.put(px, py, letter(i))
			case s.Style == Line && piece[1]-piece[0] == 1:
				c.put(px, py, '•') // a line of one point would be invisible
			case s.Style == Dots:
				alone := 0 // every dot begins its own line
				c.stroke(px, py, px, py, 0, &alone)
			case k == piece[0]:
				c.stroke(px, py, px, py, i, &n)
			default:
				c.stroke(x.at(s.X[k-1]), y.at(s.Y[k-1]), px, py, i, &n)
			}
			if s.Style == Both && !lettered {
				c.put(px, py, '•')
			} else if s.Style == Both {
				c.put(px, py, letter(i))
			}
		}
	}
	if lettered && s.Style == Line && len(s.X) > 0 {
		k := len(s.X) * (2*i + 1) / (2*i + 2) // at another place than the letters of other series
		k = min(k, len(s.X)-1)
		if x.has(s.X[k]) && y.has(s.Y[k]) {
			c.put(x.at(s.X[k]), y.at(s.Y[k]), letter(i))
		}
	}
}

// stroke draws from one point to another, both as fractions of the axes; n counts the dots along the line.
func (c *canvas) stroke(x0, y0, x1, y1 float64, pattern int, n *int) {
	from, to, ok := clip(x0, y0, x1, y1)
	if !ok {
		return
	}
	at := func(f float64) (float64, float64) {
		return (x0 + f*(x1-x0)) * float64(2*c.wide-1), (1 - y0 - f*(y1-y0)) * float64(4*c.high-1)
	}
	ax, ay := at(from)
	bx, by := at(to)
	steps := int(math.Ceil(max(math.Abs(bx-ax), math.Abs(by-ay))))
	for k := range steps + 1 {
		f := float64(k) / float64(max(steps, 1))
		if k > 0 || *n == 0 {
			if strokes[pattern%len(strokes)](*n) {
				c.dot(int(ax+f*(bx-ax)+0.5), int(ay+f*(by-ay)+0.5))
			}
			*n++
		}
	}
}

// clip returns the part of a line within the unit square, as fractions of the line (Liang & Barsky 1984).
func clip(x0, y0, x1, y1 float64) (from, to float64, ok bool) {
	from, to = 0, 1
	for _, e := range [4][2]float64{{x0 - x1, x0}, {x1 - x0, 1 - x0}, {y0 - y1, y0}, {y1 - y0, 1 - y0}} {
		p, q := e[0], e[1]
		switch {
		case p == 0 && q < 0:
			return 0, 0, false
		case p < 0:
			from = max(from, q/p)
		case p > 0:
			to = min(to, q/p)
		}
	}
	return from, to, from <= to
}

func (c *canvas) dot(x, y int) {
	if x >= 0 && x < 2*c.wide && y >= 0 && y < 4*c.high {
		c.dots[y/4*c.wide+x/2] |= bits[y%4][x%2]
	}
}

// put places a character at a point given as fractions of the axes.
func (c *canvas) put(x, y float64, r rune) {
	if x < 0 || x > 1 || y < 0 || y > 1 {
		return
	}
	column, row := int(x*float64(c.wide-1)+0.5), int((1-y)*float64(c.high-1)+0.5)
	c.over[row*c.wide+column] = r
}

// band draws the edges of a band in the empty cells.
func (c *canvas) band(b Band, x scale) {
	from, to, ok := b.columns(x, c.wide)
	for row := 0; ok && row < c.high; row++ {
		for _, column := range []int{from, to} {
			if i := row*c.wide + column; c.dots[i] == 0 && c.over[i] == 0 {
				c.over[i] = '┊'
			}
		}
	}
}

// line returns a row of the canvas.
func (c *canvas) line(row int) string {
	out := make([]rune, c.wide)
	for i := range out {
		switch at := row*c.wide + i; {
		case c.over[at] != 0:
			out[i] = c.over[at]
		case c.dots[at] != 0:
			out[i] = 0x2800 + rune(c.dots[at])
		default:
			out[i] = ' '
		}
	}
	return string(out)
}
