package attention

import (
	"fmt"
	"io"
	"math"

	"anneal/internal/svg"
)

// Size of an SVG panel in pixels, with its text and margin, and the number of panels per row.
const panelSide, panelHigh, panelMargin, panelsBeside = 256, 256 + 62, 16, 3

// shades is the number of degrees of darkness in an SVG.
const shades = 12

// SVG draws panels as a scalable picture: causal keys on a light background, darker where more pairs are seen.
func SVG(w io.Writer, panels []Panel) error {
	across := min(len(panels), panelsBeside)
	down := (len(panels) + panelsBeside - 1) / panelsBeside
	var picture svg.Picture
	for i, p := range panels {
		x, y := panelMargin+i%panelsBeside*(panelSide+panelMargin), panelMargin+i/panelsBeside*(panelHigh+panelMargin)
		picture.Group(fmt.Sprintf(`transform="translate(%d %d)" font-size="11"`, x, y), func() { p.svg(&picture) })
	}
	return picture.WriteTo(w, float64(across*(panelSide+panelMargin)+panelMargin),
		float64(down*(panelHigh+panelMargin)+panelMargin))
}

func (p Panel) svg(picture *svg.Picture) {
	const top = 20
	picture.Text(0, 11, clip(p.Title, 38), `font-weight="bold"`)
	cells := min(panelSide/2, p.Length)
	picture.Group(fmt.Sprintf(`transform="translate(0 %d) scale(%.5g)"`, top, panelSide/float64(cells)), func() {
		var earlier svg.Path // all keys that a causal model may see
		earlier.Move(0, 0)
		for i := range cells {
			earlier.Line(float64(i+1), float64(i))
			earlier.Line(float64(i+1), float64(i+1))
		}
		earlier.Line(0, float64(cells))
		earlier.Close()
		picture.Path(&earlier, `fill="#efeee2"`)
		paths := p.paths(cells)
		for shade := range paths {
			picture.Path(&paths[shade], fmt.Sprintf(`fill="#0072b2" fill-opacity="%.2f"`, float64(shade)/shades))
		}
	})
	picture.Rect(0, top, panelSide, panelSide, `fill="none" stroke="#555" stroke-width="0.7"`)
	picture.Text(0, top+panelSide+14, p.axes(), `font-size="10" fill="#555"`)
	picture.Text(0, top+panelSide+29, p.Caption, `font-size="10"`)
}

// paths returns the outline of all cells of each shade, cells beside each other as one.
func (p Panel) paths(cells int) (paths [shades + 1]svg.Path) {
	for y, row := range p.raster(cells) {
		for x := 0; x <= y; {
			shade := int(math.Ceil(shades * darkness(row[x])))
			n := 1
			for x+n <= y && int(math.Ceil(shades*darkness(row[x+n]))) == shade {
				n++
			}
			if shade > 0 {
				paths[shade].Rect(float64(x), float64(y), float64(n), 1)
			}
			x += n
		}
	}
	return paths
}
