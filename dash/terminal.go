package dash

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"anneal/chart"
	"anneal/internal/units"
	"anneal/train"

	"golang.org/x/text/width"
)

// A Screen says what a terminal shows.
type Screen struct {
	Columns, Rows int
	Run           int  // the run whose figures are shown
	Log           bool // logarithmic loss
	Axis          Axis
}

// An Axis is what the x axis of a terminal's chart counts.
type Axis uint8

// The axes.
const (
	BySteps Axis = iota
	ByTokens
	ByTime
	axes
)

// Next returns the axis after one.
func (a Axis) Next() Axis { return (a + 1) % axes }

// at returns the label of an axis and the position of a bucket on it.
func (a Axis) at() (string, func(place) float64) {
	switch a {
	case ByTokens:
		return "tokens", func(p place) float64 { return p.tokens }
	case ByTime:
		return "minutes of training", func(p place) float64 { return p.seconds / 60 }
	}
	return "steps", func(p place) float64 { return float64(p.step) }
}

const terminalSmoothing = 0.9 // weight of the previous bucket in a smoothed loss

// Draw returns the lines of a screen, at most o.Rows of at most o.Columns columns.
func (w *Watch) Draw(o Screen, now time.Time) []string {
	if o.Columns <= 0 || o.Rows <= 0 { // a terminal of unknown size reports 0
		o.Columns, o.Rows = 80, 24
	}
	v := w.View(now)
	o.Run = min(max(o.Run, 0), len(v.Runs)-1)
	r := &v.Runs[o.Run]
	lines := append(headLines(r, o, len(v.Runs)), w.runs[o.Run].points.insideLine(o.Columns)...)
	lines = append(lines, memoryLine(r, o.Columns)...)
	lines = append(lines, sampleLine(r)...)
	if len(v.Runs) > 1 {
		lines = append(lines, otherRuns(v.Runs, o.Run, o.Columns)...)
	}
	alerts := r.Alerts
	for _, a := range alerts[max(0, len(alerts)-2):] {
		text, _, _ := strings.Cut(a.Text, "\n")
		lines = append(lines, fmt.Sprintf("! %s, step %d: %s", a.Kind, a.Step, text))
	}
	const keys = "q quit   n next run   l log loss   x axis"
	lines = append(lines, "")
	if high := o.Rows - len(lines) - 1; high >= 10 {
		var b strings.Builder
		w.lossChart(o).Terminal(&b, o.Columns-1, high)
		lines = append(lines, strings.Split(strings.TrimRight(b.String(), "\n"), "\n")...)
	}
	lines = append(lines[:min(len(lines), o.Rows-1)], keys)
	for i := range lines {
		lines[i] = cut(strings.Map(printable, lines[i]), o.Columns)
	}
	return lines
}

// cut returns as much of a line as fits in a number of columns, of which East Asian letters and emoji take two.
func cut(line string, columns int) string {
	for i, r := range line {
		columns--
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			columns--
		}
		if columns < 0 {
			return line[:i]
		}
	}
	return line
}

// printable replaces control characters: lines hold texts from the runs' files.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '\uFFFD'
}

// headLines returns the lines with the figures of a run.
func headLines(r *RunView, o Screen, of int) []string {
	share := 0.0
	if r.Steps > 0 {
		share = min(float64(r.Step)/float64(r.Steps), 1)
	}
	title := fmt.Sprintf("%s  %s", r.Dir, r.State)
	if of > 1 {
		title += fmt.Sprintf("  [%d of %d]", o.Run+1, of)
	}
	wide := max(o.Columns-48, 10)
	full := int(share * float64(wide))
	progress := fmt.Sprintf("%s%s %3.0f %%  step %d of %d  ETA %s", strings.Repeat("█", full),
		strings.Repeat("░", wide-full), 100*share, r.Step, r.Steps, timeLeft(r.ETASeconds))
	if r.Steps == 0 {
		progress = fmt.Sprintf("weights alone, of step %d", r.Step)
	}
	return []string{
		title,
		progress,
		fitting(o.Columns, "loss "+digits(r.Loss, 4)+" nats/token",
			fmt.Sprintf("val %s bits/byte at %d", digits(r.ValBitsPerByte, 4), r.ValStep), "lr "+digits(r.LR, 3),
			"|g| "+digits(r.GradNorm, 3)),
		fitting(o.Columns, append([]string{
			digits(r.Rate, 4) + " tok/s", percent(r.PeakShare) + " of peak", "memory " + size(r.RSS),
		}, phases(r)...)...),
	}
}

// fitting joins as many of the first parts as fit in a number of columns. It cuts no part, as a number that is cut off
// would be wrong.
func fitting(columns int, parts ...string) string {
	const apart = "   "
	line := parts[0]
	for _, p := range parts[1:] {
		if utf8.RuneCountInString(line+apart+p) > columns {
			break
		}
		line += apart + p
	}
	return line
}

// otherRuns returns one line for each of the other runs, at most five.
func otherRuns(runs []RunView, but, columns int) []string {
	var lines []string
	for i := range runs {
		if r := &runs[i]; i != but && len(lines) < 5 {
			lines = append(lines, fitting(columns, fmt.Sprintf("(%d) %-16.16s %-9s", i+1, r.Name, r.State),
				"loss "+digits(r.Loss, 4), digits(r.Rate, 4)+" tok/s", "val "+digits(r.ValBitsPerByte, 4),
				fmt.Sprintf("step %d", r.Step)))
		}
	}
	return lines
}

// phases names the two phases that take the most time of a step.
func phases(r *RunView) (list []string) {
	sum := train.Number(0)
	for _, seconds := range r.Phases {
		sum += seconds
	}
	names := slices.SortedFunc(maps.Keys(r.Phases), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Phases[b], r.Phases[a]), cmp.Compare(a, b))
	})
	for _, name := range names[:min(2, len(names))] {
		list = append(list, name+" "+percent(r.Phases[name]/sum))
	}
	return list
}

// lossChart draws the losses of the runs: for a single run every bucket, the smoothed curve and the evaluations; for
// several runs only the smoothed curves.
func (w *Watch) lossChart(o Screen) *chart.Chart {
	label, at := o.Axis.at()
	c := &chart.Chart{
		X: chart.Axis{Label: label}, Y: chart.Axis{Label: "loss (nats per token)", Log: o.Log},
	}
	for i, r := range w.runs {
		s := r.points.chartSeries("loss", at)
		if len(w.runs) == 1 {
			s.Style = chart.Dots
			c.Series = append(c.Series, s)
		}
		s.Y, s.Style, s.Name = smoothed(s.Y), chart.Line, w.name(i)
		if len(w.runs) == 1 {
			s.Name = ""
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// chartSeries returns the means of a number's buckets.
func (f *follower) chartSeries(name string, at func(place) float64) (s chart.Series) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, ok := f.table.index[name]
	if !ok {
		return s
	}
	for k, c := range f.table.columns[i].cells {
		if c.n > 0 {
			s.X, s.Y = append(s.X, at(f.table.x[k])), append(s.Y, c.mean())
		}
	}
	return s
}

// smoothed returns an exponential moving average, corrected for its start.
func smoothed(values []float64) []float64 {
	out := make([]float64, len(values))
	sum, weight := 0.0, 0.0
	for i, v := range values {
		sum = terminalSmoothing*sum + (1-terminalSmoothing)*v
		weight = terminalSmoothing*weight + 1 - terminalSmoothing
		out[i] = sum / weight
	}
	return out
}

// digits writes a number with so many digits; "–" if it is not known.
func digits(x train.Number, n int) string {
	switch f := float64(x); {
	case math.IsNaN(f):
		return "–"
	case math.Abs(f) >= 1000 && math.Abs(f) < 1e9:
		return fmt.Sprintf("%.0f", f)
	default:
		return fmt.Sprintf("%.*g", n, f)
	}
}

func percent(x train.Number) string {
	if x != x {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

func size(x train.Number) string {
	if x != x {
		return "–"
	}
	return units.FormatBytes(int64(x))
}

func timeLeft(x train.Number) string {
	if x != x {
		return "–"
	}
	return time.Duration(float64(x) * float64(time.Second)).Round(time.Second).String()
}
