package draw

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"anneal/program"
)

// mostBlocks is the largest number of blocks of lines that a long step is drawn in.
const mostBlocks = 6

// Text draws a panel as characters, in lines of at most so many columns: F3 is the forward of micro-batch 3, B its
// backward, W the gradients of its weights; dots are idle. A step that is longer than a line continues below; only the
// beginning of a very long one is drawn.
//
//	stage 0  F0 F1 ......B0─── F2 B1─── F3 B2─── ...B3───
//	stage 1  ...F0 B0─── F1 B1─── F2 B2─── F3 B3─── ......
func (p Panel) Text(out io.Writer, columns int) error {
	w := bufio.NewWriter(out)
	scale, length := p.scale()
	names := len(fmt.Sprint("stage ", len(p.Lists)-1)) + 2
	wide := max(columns-names-1, 8)
	if length > wide && length <= wide*9/8 { // little remains for a second block: labels lose the space after them
		scale, length = scale*float64(wide)/float64(length), wide
	}
	lines := make([]string, len(p.Lists))
	for s := range lines {
		lines[s] = p.line(s, scale, length)
	}
	for block, from := 0, 0; from < length; block, from = block+1, from+wide {
		if block == mostBlocks {
			fmt.Fprintf(w, "… %.0f %% of the step is drawn\n", 100*float64(from)/float64(length))
			break
		}
		if block > 0 {
			fmt.Fprintln(w)
		}
		for s, line := range lines {
			fmt.Fprintf(w, "%-*s%s\n", names, fmt.Sprint("stage ", s), cutAt(line, from, from+wide))
		}
	}
	return w.Flush()
}

// scale returns the columns for a unit of time, such that the label of the shortest forward has room and a space after
// it, unless that takes less than half the mean; and the columns for the whole step.
func (p Panel) scale() (scale float64, length int) {
	label, sum, n, shortest := 0, 0.0, 0, math.Inf(1)
	for s := range p.Lists {
		for _, b := range p.bars(s) {
			label = max(label, len(p.label(b.instr)))
			if b.instr.Op == program.Forward {
				sum, n, shortest = sum+b.End-b.Start, n+1, min(shortest, b.End-b.Start)
			}
		}
	}
	if sum == 0 {
		return 1, int(math.Ceil(p.Timeline.Total))
	}
	scale = float64(label+1) / max(shortest, sum/float64(n)/2)
	return scale, int(math.Round(p.Timeline.Total * scale))
}

// line is the whole step of a stage, a rune a column.
func (p Panel) line(stage int, scale float64, length int) string {
	line := []rune(strings.Repeat(".", length))
	for _, b := range p.bars(stage) {
		from, to := int(math.Round(b.Start*scale)), min(int(math.Round(b.End*scale)), length)
		label := []rune(p.label(b.instr))
		for i := from; i < to; i++ {
			switch k := i - from; {
			case i == to-1 && k > 0 && (k >= len(label) || to-from < len(label)):
				line[i] = ' '
			case k < len(label):
				line[i] = label[k]
			default:
				line[i] = '─'
			}
		}
	}
	return string(line)
}

// cutAt returns the runes from … to of a line, or as many of them as the line has.
func cutAt(line string, from, to int) string {
	r := []rune(line)
	return string(r[min(from, len(r)):min(to, len(r))])
}
