package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTicksAreRoundValuesInRange(t *testing.T) {
	for _, c := range []struct {
		s    scale
		want int
		ok   string
	}{
		{scale{0, 10, false}, 5, "0 2 4 6 8 10"},
		{scale{-0.3, 0.9, false}, 4, "0 0.5"},
		{scale{1.95, 2.21, false}, 5, "2 2.1 2.2"},
		{scale{1e-7, 10, true}, 9, "1e-7 1e-6 1e-5 1e-4 0.001 0.01 0.1 1 10"},
		{scale{1e-8, 1e4, true}, 4, "1e-8 1e-4 1 10,000"},
		{scale{0.9, 60, true}, 8, "1 2 5 10 20 50"},
		{scale{3.1, 4.2, true}, 4, "3.5 4"}, // less than a decade: as on a linear axis
		{scale{2e6, 1e7, false}, 4, "2e6 4e6 6e6 8e6 1e7"},
	} {
		var got []string
		for _, v := range (Axis{}).ticks(c.s, c.want) {
			got = append(got, Number(v))
		}
		if s := strings.Join(got, " "); s != c.ok {
			t.Errorf("%+v, about %d: %s, want %s", c.s, c.want, s, c.ok)
		}
	}
	if got := (Axis{Ticks: []float64{0, 64, 128, 4096}}).ticks(scale{64, 512, true}, 3); !slices.Equal(got,
		[]float64{64, 128}) {
		t.Errorf("given ticks: %v, want those in range", got)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", -2.5: "-2.5", 0.001: "0.001", 0.00012345: "1.234e-4",
		1000: "1,000", -123456: "-123,500", 1e6: "1e6",
		-3e-7: "-3e-7", 0.1 + 0.2: "0.3", 999999: "1e6",
	} {
		if got := Number(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

// A diagonal on a square of dots fills exactly its diagonal.
func TestALineGoesThroughItsDots(t *testing.T) {
	c := newCanvas(10, 5) // 20 by 20 dots
	s := scale{min: 0, max: 1}
	c.series(Series{X: []float64{0, 1}, Y: []float64{0, 1}}, 0, false, s, s)
	for y := range 20 {
		for x := range 20 {
			if got, want := c.dots[y/4*10+x/2]&bits[y%4][x%2] != 0, x == 19-y; got != want {
				t.Errorf("dot %d, %d from the top left: drawn %v, want %v", x, y, got, want)
			}
		}
	}
	if got := c.line(4); []rune(got)[0] != '⡠' {
		t.Errorf("the bottom left cell is %c, want ⡠", []rune(got)[0])
	}
}

// On a logarithmic axis from 1 to 100, 10 is in the middle; marks are in the column and the row of their values.
func TestMarksStandWhereTheirValuesAre(t *testing.T) {
	c := Chart{
		X: Axis{Log: true, Min: 1, Max: 100}, Y: Axis{Min: 0, Max: 10},
		Series: []Series{{X: []float64{1, 100}, Y: []float64{0, 0}}},
		Marks:  []Mark{{X: 10, Y: 5}, {X: 1000, Y: 5}, {X: 100, Y: 10}},
	}
	var out strings.Builder
	if err := c.Terminal(&out, 47, 15); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	at := map[rune][2]int{}
	start := 0
	for row, l := range lines {
		for column, r := range []rune(l) {
			if r == '┤' {
				start = column + 1
			}
			if slices.Contains(markers, r) {
				at[r] = [2]int{column, row}
			}
		}
	}
	wide, high := 0, 0
	for row, l := range lines {
		if strings.Contains(l, "└") {
			wide, high = len([]rune(l))-start, row
		}
	}
	high -= int((10.4 - 10) / 10.8 * float64(high)) // 4 % above the largest value
	if got := at['◆']; got[0] != start+wide/2 || math.Abs(float64(got[1])-float64(len(lines)-3)/2) > 1 {
		t.Errorf("the mark at (10, 5) stands in column %d and row %d of %d by %d\n%s",
			got[0]-start, got[1], wide, high, out.String())
	}
	if got := at['▲']; got[0] != start+wide-1 || got[1] > 1 {
		t.Errorf("the mark at (100, 10) stands in column %d and row %d\n%s", got[0]-start, got[1], out.String())
	}
	if _, drawn := at['●']; drawn {
		t.Errorf("a mark outside of the axis was drawn\n%s", out.String())
	}
}

// Whatever the numbers, both forms are drawn: the SVG is well-formed XML and the text keeps to its columns and lines.
func TestAnyNumbersGiveAChart(t *testing.T) {
	value := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-10, 10),
		rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 5e-324}))
	rapid.Check(t, func(t *rapid.T) {
		c := Chart{
			Title: "a < b & c", X: Axis{Label: "x", Log: rapid.Bool().Draw(t, "log x")},
			Y: Axis{Label: "y", Log: rapid.Bool().Draw(t, "log y")},
		}
		for range rapid.IntRange(0, 5).Draw(t, "series") {
			n := rapid.IntRange(0, 12).Draw(t, "points")
			c.Series = append(c.Series, Series{
				Name: "s", Style: Style(rapid.IntRange(0, 3).Draw(t, "style")),
				X: rapid.SliceOfN(value, n, n).Draw(t, "x"), Y: rapid.SliceOfN(value, n, n).Draw(t, "y"),
			})
		}
		c.Bands = []Band{{"band", value.Draw(t, "from"), value.Draw(t, "to")}}
		c.Marks = []Mark{{"mark", value.Draw(t, "mark x"), value.Draw(t, "mark y")}}

		columns, rows := rapid.IntRange(0, 120).Draw(t, "columns"), rapid.IntRange(0, 40).Draw(t, "rows")
		var text, svg bytes.Buffer
		if err := c.Terminal(&text, columns, rows); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		if limit := max(rows, 18); len(lines) > limit {
			t.Fatalf("%d lines, want at most %d\n%s", len(lines), limit, text.String())
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > max(columns, minColumns) || strings.ContainsRune(l, '\x1b') {
				t.Fatalf("%d columns asked for, a line has %d: %q", columns, n, l)
			}
		}
		if err := c.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(svg.String(), "NaN") || strings.Contains(svg.String(), "Inf") {
			t.Fatalf("the picture holds a coordinate that is no number:\n%s", svg.String())
		}
		for d := xml.NewDecoder(&svg); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A band fills what lies between its edges, and its axis covers it. A gap in one edge is a gap in the band.
func TestABandLiesBetweenItsEdges(t *testing.T) {
	c := Chart{Series: []Series{{
		X: []float64{0, 1, 2, 3}, Y: []float64{1, 1, 1, 1},
		Low: []float64{0, 0, math.NaN(), 0}, High: []float64{2, 2, 2, 3},
	}}}
	if _, y := c.scales(); y.min > 0 || y.max < 3 {
		t.Errorf("the y axis goes from %v to %v; the band from 0 to 3", y.min, y.max)
	}
	var out strings.Builder
	if err := c.SVG(&out); err != nil {
		t.Fatal(err)
	}
	bands := regexp.MustCompile(`<path d="([^"]*)" fill="#0072b2" fill-opacity="0.15"/>`).FindAllStringSubmatch(
		out.String(), -1)
	if len(bands) != 2 || strings.Count(bands[0][1], "L") != 3 || strings.Count(bands[1][1], "L") != 1 {
		t.Errorf("bands %q, want one of four corners and one of two", bands)
	}
	c.Series[0].High = c.Series[0].High[:3]
	if err := c.SVG(&out); err == nil || !strings.Contains(err.Error(), "both edges") {
		t.Errorf("a band with a short edge: %v", err)
	}
}

// The same chart is the same file.
func TestSVGIsDeterministic(t *testing.T) {
	c := Chart{
		Title: "t", Series: []Series{{Name: "a", X: []float64{1, 2}, Y: []float64{3, 4}, Style: Both},
			{Name: "b", X: []float64{1}, Y: []float64{1}}},
	}
	var first, second bytes.Buffer
	if err := errors.Join(c.SVG(&first), c.SVG(&second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two drawings of one chart differ")
	}
}

// pathsOf returns the coordinates that the lines of a picture go through, without the grid and the axes.
func pathsOf(t *testing.T, c Chart) (points [][2]float64, high float64) {
	t.Helper()
	var out bytes.Buffer
	if err := c.SVG(&out); err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`<path d="([^"]*)" fill="none" stroke="#0`).FindAllStringSubmatch(out.String(),
		-1) {
		for _, at := range regexp.MustCompile(`[ML]([\d.-]+) ([\d.-]+)`).FindAllStringSubmatch(m[1], -1) {
			x, _ := strconv.ParseFloat(at[1], 64)
			y, _ := strconv.ParseFloat(at[2], 64)
			points = append(points, [2]float64{x, y})
		}
	}
	size := regexp.MustCompile(`viewBox="0 0 \d+ ([\d.]+)"`).FindStringSubmatch(out.String())
	high, _ = strconv.ParseFloat(size[1], 64)
	return points, high
}

// Lines end at the frame where the axes are given and values go beyond.
func TestLinesStayWithinTheFrame(t *testing.T) {
	points, _ := pathsOf(t, Chart{
		Y: Axis{Min: 0, Max: 1}, Series: []Series{{X: []float64{0, 1, 2, 3, 4}, Y: []float64{0.5, 1e90, 0.5, 0.6, -7}}},
	})
	if len(points) != 6 { // the line leaves the frame and returns once, then leaves it for good
		t.Errorf("the line goes through %d points, want 6: %v", len(points), points)
	}
	for _, at := range points {
		if at[0] < 0 || at[0] > svgWidth || at[1] < 0 || at[1] > svgHeight {
			t.Errorf("the line goes through %v, outside of the picture", at)
		}
	}
}

// A legend takes a corner without data. If all corners have data, the picture grows and the legend goes below the
// axis.
func TestALegendCoversNoData(t *testing.T) {
	rising := Series{Name: "rising", X: []float64{0, 1}, Y: []float64{0, 1}}
	if _, high := pathsOf(t, Chart{Series: []Series{rising}}); high != svgHeight {
		t.Errorf("with two free corners the picture is %v high, want %v", high, svgHeight)
	}
	falling := Series{Name: "falling", X: []float64{0, 1}, Y: []float64{1, 0}}
	if _, high := pathsOf(t, Chart{Series: []Series{rising, falling}}); high <= svgHeight {
		t.Errorf("with no free corner the picture is %v high, want more than %v", high, svgHeight)
	}
}

// A chart that cannot be drawn gives an error that names the fault. It must neither panic nor, on a logarithmic axis,
// loop for ever.
func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	line := []Series{{Name: "loss", X: []float64{1, 2}, Y: []float64{3, 4}}}
	for want, c := range map[string]Chart{
		`series 0, "loss", has 2 numbers in X and 1 in Y`: {Series: []Series{{Name: "loss", X: []float64{1, 2}, Y: []float64{3}}}},
		"logarithmic x axis cannot go from 0 to 10":       {X: Axis{Log: true, Max: 10}, Series: line},
		"logarithmic y axis cannot go from -1 to 10":      {Y: Axis{Log: true, Min: -1, Max: 10}, Series: line},
		"x axis cannot go from 5 to 1":                    {X: Axis{Min: 5, Max: 1}, Series: line},
		"y axis cannot go from NaN to 1":                  {Y: Axis{Min: math.NaN(), Max: 1}, Series: line},
		"x axis cannot go from 0 to +Inf":                 {X: Axis{Max: math.Inf(1)}, Series: line},
	} {
		for _, err := range []error{c.SVG(io.Discard), c.Terminal(io.Discard, 80, 20)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}
