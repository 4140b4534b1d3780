package draw

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Overview draws a whole panel with one line per stage and at most the given number of columns. A column shows the
// letter, F, B or W, of the computation that takes most of its time, or a dot if the stage is mostly idle. Letters of
// every second chunk of layers are lower case.
//
//	stage 0  FFFF......BBBBBBFFBBBB
//	stage 1  ..FFFFBBBBFFBBBB......
func (p Panel) Overview(out io.Writer, columns int) error {
	w := bufio.NewWriter(out)
	names := len(fmt.Sprint("stage ", len(p.Lists)-1)) + 2
	wide := max(columns-names-1, 8)
	for s := range p.Lists {
		fmt.Fprintf(w, "%-*s%s\n", names, fmt.Sprint("stage ", s), p.columns(s, wide))
	}
	return w.Flush()
}

// columns returns what a stage does in each of so many equal parts of the step.
func (p Panel) columns(stage, wide int) string {
	shares := make([]map[string]float64, wide) // of a column, by letter
	scale := float64(wide) / max(p.Timeline.Total, 1e-300)
	for _, b := range p.bars(stage) {
		text := letter(b.instr.Op)
		if b.instr.Chunk%2 == 1 {
			text = strings.ToLower(text)
		}
		from, to := b.Start*scale, b.End*scale
		for i := int(from); i < wide && float64(i) < to; i++ {
			if shares[i] == nil {
				shares[i] = map[string]float64{}
			}
			shares[i][text] += min(to, float64(i+1)) - max(from, float64(i))
		}
	}
	var line strings.Builder
	for _, column := range shares {
		best, most := ".", 1.0 // the share of idle time
		for _, share := range column {
			most -= share
		}
		for _, text := range []string{"F", "f", "B", "b", "W", "w"} {
			if column[text] > most {
				best, most = text, column[text]
			}
		}
		line.WriteString(best)
	}
	return line.String()
}

// Fits reports whether Text draws the whole panel in one block of lines.
func (p Panel) Fits(columns int) bool {
	_, length := p.scale()
	return length < columns-len(fmt.Sprint("stage ", len(p.Lists)-1))-2
}
