package attention

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// The size of a panel of an SVG in pixels, with its text and a margin around; and how many stand beside each other.
const panelSide, panelHigh, panelMargin, panelsBeside = 256, 256 + 62, 16, 3

// shades is how many degrees of darkness an SVG has.
const shades = 12

// SVG draws panels as a picture that scales to any size: keys that may be seen on a light ground, darker where more pairs are.
func SVG(w io.Writer, panels []Panel) error {
	across := min(len(panels), panelsBeside)
	down := (len(panels) + panelsBeside - 1) / panelsBeside
	width, height := across*(panelSide+panelMargin)+panelMargin, down*(panelHigh+panelMargin)+panelMargin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="Liberation Sans,Arial,Helvetica,sans-serif" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	for i, p := range panels {
		x, y := panelMargin+i%panelsBeside*(panelSide+panelMargin), panelMargin+i/panelsBeside*(panelHigh+panelMargin)
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", x, y)
		p.svg(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (p Panel) svg(b *strings.Builder) {
	const top = 20
	label := func(x, y int, more, text string) {
		fmt.Fprintf(b, `<text x="%d" y="%d"%s>`, x, y, more)
		_ = xml.EscapeText(b, []byte(text)) // a Builder has no errors
		b.WriteString("</text>\n")
	}
	label(0, 11, ` font-weight="bold"`, clip(p.Title, 38))
	cells := min(panelSide/2, p.Length)
	fmt.Fprintf(b, `<g transform="translate(0 %d) scale(%.5g)">`+"\n", top, panelSide/float64(cells))
	fmt.Fprintf(b, `<path fill="#efeee2" d="M0 0%sV%dH0z"/>`+"\n", strings.Repeat("h1v1", cells), cells)
	for shade, path := range p.paths(cells) {
		if path != "" {
			fmt.Fprintf(b, `<path fill="#0072b2" fill-opacity="%.2f" d="%s"/>`+"\n", float64(shade)/shades, path)
		}
	}
	b.WriteString("</g>\n")
	fmt.Fprintf(b, `<rect y="%d" width="%d" height="%d" fill="none" stroke="#555" stroke-width="0.7"/>`+"\n", top, panelSide, panelSide)
	label(0, top+panelSide+14, ` font-size="10" fill="#555"`, p.axes())
	label(0, top+panelSide+29, ` font-size="10"`, p.Caption)
}

// paths returns the outline of all cells of each shade, cells beside each other as one.
func (p Panel) paths(cells int) [shades + 1]string {
	var paths [shades + 1]strings.Builder
	for y, row := range p.raster(cells) {
		for x := 0; x <= y; {
			shade := int(math.Ceil(shades * darkness(row[x])))
			n := 1
			for x+n <= y && int(math.Ceil(shades*darkness(row[x+n]))) == shade {
				n++
			}
			if shade > 0 {
				fmt.Fprintf(&paths[shade], "M%d %dh%dv1h-%dz", x, y, n, n)
			}
			x += n
		}
	}
	var texts [shades + 1]string
	for i := range paths {
		texts[i] = paths[i].String()
	}
	return texts
}
