package chart

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// The smallest size that Terminal draws.
const minColumns, minRows = 40, 10

// Terminal writes the chart in characters: columns wide, rows lines high with title, axes and legend, and at least 40
// × 10. Lines are drawn with braille characters, eight dots each; several lines have letters.
func (c *Chart) Terminal(w io.Writer, columns, rows int) error {
	if err := c.check(); err != nil {
		return err
	}
	x, y := c.scales()
	columns, rows = max(columns, minColumns), max(rows, minRows)
	legend := c.legend()
	used := 2 + len(legend) // axis and its labels
	for _, text := range []string{c.Title, c.X.Label, c.Y.Label} {
		if text != "" {
			used++
		}
	}
	high := max(rows-used, 5)
	left := gutter{labels: map[int]string{}}
	for _, v := range c.Y.ticks(y, max(high/3, 2)) {
		left.label(high-1-int(y.at(v)*float64(high-1)+0.5), Number(v))
	}
	wide := max(columns-left.width-3, 20)
	area := newCanvas(wide, high)
	for i, s := range c.Series {
		area.series(s, i, c.lines() > 1, x, y)
	}
	for _, b := range c.Bands {
		area.band(b, x)
	}
	for i, m := range c.Marks {
		if x.has(m.X) && y.has(m.Y) {
			area.put(x.at(m.X), y.at(m.Y), markers[i%len(markers)])
		}
	}

	var out strings.Builder
	line := func(format string, args ...any) {
		out.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
	}
	margin := strings.Repeat(" ", left.width)
	if c.Title != "" {
		line("%s%s", margin, centred(c.Title, wide+3))
	}
	if c.Y.Label != "" {
		line("%s", c.Y.Label)
	}
	for r := range high {
		edge := "│"
		if left.labels[r] != "" {
			edge = "┤"
		}
		line("%*s %s%s", left.width, left.labels[r], edge, area.line(r))
	}
	axis, labels := c.axis(x, wide)
	line("%s └%s", margin, axis)
	line("%s  %s", margin, labels)
	if c.X.Label != "" {
		line("%s  %s", margin, centred(c.X.Label, wide))
	}
	for _, l := range legend {
		line("%s  %s", margin, l)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// markers stand for marks, in order.
var markers = []rune{'◆', '●', '▲', '■'}

// gutter holds the labels left of the y axis.
type gutter struct {
	labels map[int]string // by row
	width  int
}

func (g *gutter) label(row int, text string) {
	g.labels[row] = text
	g.width = max(g.width, utf8.RuneCountInString(text))
}

// axis returns the line under the plot, heavy below bands, and the labels of its ticks.
func (c *Chart) axis(x scale, wide int) (rule, labels string) {
	line, text := []rune(strings.Repeat("─", wide)), []rune(strings.Repeat(" ", wide))
	for _, b := range c.Bands {
		from, to, ok := b.columns(x, wide)
		for i := from; ok && i <= to; i++ {
			line[i] = '━'
		}
	}
	free := 0
	for _, v := range c.X.ticks(x, wide/9) {
		label, at := []rune(Number(v)), column(x, v, wide)
		start := min(max(at-len(label)/2, 0), wide-len(label))
		if start < free {
			continue
		}
		free = start + len(label) + 1
		copy(text[start:], label)
		line[at] = '┬'
	}
	return string(line), string(text)
}

// columns returns the first and the last visible column of a band.
func (b Band) columns(x scale, wide int) (from, to int, ok bool) {
	if !x.has(b.From) || !x.has(b.To) || max(b.From, b.To) < x.min || min(b.From, b.To) > x.max {
		return 0, 0, false
	}
	return column(x, max(min(b.From, b.To), x.min), wide), column(x, min(max(b.From, b.To), x.max), wide), true
}

func column(x scale, v float64, wide int) int { return int(x.at(v)*float64(wide-1) + 0.5) }

// legend lists the named series, bands and marks.
func (c *Chart) legend() []string {
	var list []string
	for i, s := range c.Series {
		sign := strings.Repeat(string(sample(i)), 3)
		switch {
		case s.Style == Dots:
			sign = "⠂⠐⠄"
		case s.Style == Points:
			sign = string(letter(i))
		case c.lines() > 1:
			sign = string(letter(i)) + " " + sign
		}
		if s.Name != "" {
			list = append(list, sign+" "+s.Name)
		}
	}
	for i, m := range c.Marks {
		if m.Name != "" {
			list = append(list, string(markers[i%len(markers)])+" "+m.Name)
		}
	}
	for _, b := range c.Bands {
		if b.Name != "" {
			list = append(list, "┊━┊ "+b.Name)
		}
	}
	return list
}

// lines counts the series that need a letter to be told apart.
func (c *Chart) lines() int {
	n := 0
	for _, s := range c.Series {
		if s.Style != Dots {
			n++
		}
	}
	return n
}

// letter names a series: a, b, c …
func letter(i int) rune { return 'a' + rune(i%26) }

func centred(s string, wide int) string {
	return strings.Repeat(" ", max((wide-utf8.RuneCountInString(s))/2, 0)) + s
}
