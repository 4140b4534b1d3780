package attention

import (
	"io"
	"strings"
	"unicode/utf8"
)

// panelColumns is the width of a panel in a terminal, in characters. Its height is half of that, so that braille dots
// are square.
const panelColumns = 46

// Terminal draws panels with braille characters, side by side if columns allow. In a short row a dot is one pair of
// query and key. In longer rows the number of dots grows with the share of visible pairs.
func Terminal(w io.Writer, panels []Panel, columns int) error {
	wide := min(panelColumns, max(columns-2, 16)) / 2 * 2
	beside := max((columns+1)/(wide+3), 1)
	var out strings.Builder
	for len(panels) > 0 {
		group := panels[:min(beside, len(panels))]
		panels = panels[len(group):]
		var lines [][]string
		for _, p := range group {
			lines = append(lines, p.lines(wide))
		}
		for i := range lines[0] {
			row := ""
			for n := range lines {
				row += strings.Repeat(" ", n*(wide+3)-utf8.RuneCountInString(row)) + lines[n][i]
			}
			out.WriteString(strings.TrimRight(row, " ") + "\n")
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// lines draws one panel with the given width in characters.
func (p Panel) lines(wide int) []string {
	dots := min(2*wide, p.Length)
	share := p.raster(dots)
	cells := make([][]rune, (dots+3)/4)
	for row := range cells {
		cells[row] = []rune(strings.Repeat(" ", wide))
	}
	for y := range dots {
		for x := range y + 1 {
			if darkness(share[y][x]) > threshold(x, y) {
				c := &cells[y/4][x/2]
				*c = max(*c, 0x2800) | rune(braille[y%4][x%2])
			}
		}
	}
	lines := []string{clip(p.Title, wide+2), "┌" + strings.Repeat("─", wide) + "┐"}
	for _, c := range cells {
		lines = append(lines, "│"+string(c)+"│")
	}
	return append(lines, "└"+strings.Repeat("─", wide)+"┘", clip(p.axes(), wide+2), clip(p.Caption, wide+2))
}

// braille holds the bits of the dots of a character, [row][column], in the order of the Unicode block.
var braille = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// threshold is the darkness above which a dot is drawn (ordered dithering, Bayer 1973).
func threshold(x, y int) float64 {
	order := [4][4]float64{{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}}
	return (order[y%4][x%4] + 0.5) / 16
}

// clip shortens a text to wide characters.
func clip(s string, wide int) string {
	if utf8.RuneCountInString(s) <= wide {
		return s
	}
	return string([]rune(s)[:wide-1]) + "…"
}
