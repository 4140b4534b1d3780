package draw

import (
	"fmt"
	"io"

	"anneal/internal/svg"
	"anneal/program"
)

// Sizes of an SVG in pixels, and the style of its text.
const (
	left, drawn, right = 64., 760., 128.
	rowHigh, rowGap    = 20., 4.
	panelTop, panelGap = 30., 22.

	bold   = `font-size="13" fill="#111" font-weight="bold"`
	small  = `font-size="11" fill="#333"`
	middle = ` text-anchor="middle"`
)

// The colours of a stage's computations.
var colours = map[string]string{"F": "#88bbdd", "B": "#4477aa", "W": "#228833"}

// SVG draws panels below each other, all at the same scale. The length of a bar is its time; idle time is light. Bars
// of a stage's second and later chunks are paler.
func SVG(w io.Writer, panels []Panel) error {
	longest := 0.0
	for _, p := range panels {
		longest = max(longest, p.Timeline.Total)
	}
	var picture svg.Picture
	y := 8.
	for _, p := range panels {
		p.svg(&picture, y, drawn/longest)
		y += panelTop + float64(len(p.Lists))*(rowHigh+rowGap) + panelGap
	}
	legend(&picture, y, used(panels))
	return picture.WriteTo(w, left+drawn+right, y+20)
}

func (p Panel) svg(picture *svg.Picture, top, scale float64) {
	picture.Text(12, top+16, p.Title, bold)
	for s := range p.Lists {
		y := top + panelTop + float64(s)*(rowHigh+rowGap)
		picture.Text(12, y+14, fmt.Sprint("stage ", s), small)
		picture.Rect(left, y, p.Timeline.Total*scale, rowHigh, `fill="#efeee2"`)
		for _, b := range p.bars(s) {
			p.bar(picture, b, y, scale)
		}
		picture.Text(left+p.Timeline.Total*scale+8, y+14, p.facts(s), small)
	}
}

func (p Panel) bar(picture *svg.Picture, b bar, y, scale float64) {
	x, wide := left+b.Start*scale, (b.End-b.Start)*scale
	pale := 1 - 0.6*float64(b.instr.Chunk)/float64(max(p.Chunks, 1))
	edge := 1.
	if wide < 6 { // else the edges would hide the bar
		edge = wide / 10
	}
	picture.Rect(x, y, wide, rowHigh, fmt.Sprintf(`fill="%s" fill-opacity="%.2f" stroke="#fff" stroke-width="%.2g"`,
		colours[letter(b.instr.Op)], pale, edge))
	ink := ` fill="#fff"`
	if b.instr.Op == program.Forward || b.instr.Chunk > 0 {
		ink = ` fill="#111"`
	}
	if text := fmt.Sprint(b.instr.Micro); svg.Width(text, 10) < wide-2 {
		picture.Text(x+wide/2, y+14, text, `font-size="10"`+middle+ink)
	}
}

// used returns the letters of the computations that occur.
func used(panels []Panel) map[string]bool {
	letters := map[string]bool{"": true}
	for _, p := range panels {
		for s := range p.Lists {
			for _, b := range p.bars(s) {
				letters[letter(b.instr.Op)] = true
			}
		}
	}
	return letters
}

// legend shows the colour of each letter.
func legend(picture *svg.Picture, y float64, letters map[string]bool) {
	x := left
	for _, e := range [][2]string{
		{"F", "forward"}, {"B", "backward, or that of the input"}, {"W", "gradients of weights"}, {"", "idle"},
	} {
		if !letters[e[0]] {
			continue
		}
		colour := colours[e[0]]
		if colour == "" {
			colour = "#efeee2"
		}
		picture.Rect(x, y-10, 12, 12, fmt.Sprintf(`fill="%s"`, colour))
		picture.Text(x+17, y, e[1], small)
		x += 17 + svg.Width(e[1], 11) + 44
	}
	picture.Text(x, y, "numbers: micro-batches; paler: later chunks of layers", small)
}
