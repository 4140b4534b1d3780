package main

import (
	"fmt"
	"io"
	"math"

	"anneal/chart"
	"anneal/internal/svg"
	"anneal/plan/cluster"
)

// memoryPart is a part of a rank's memory with its letter on the terminal and its colour in a picture.
type memoryPart struct {
	letter, name, colour string
	bytes                func(cluster.Memory) float64
}

// The colours, light and dark in turn, can be told apart with any colour vision.
var memoryParts = []memoryPart{
	{"W", "weights", "#0072b2", func(m cluster.Memory) float64 { return m.Weights }},
	{"G", "gradients", "#56b4e9", func(m cluster.Memory) float64 { return m.Gradients }},
	{"O", "optimizer", "#009e73", func(m cluster.Memory) float64 { return m.Optimizer }},
	{"A", "activations", "#e69f00", func(m cluster.Memory) float64 { return m.Activations }},
	{"L", "logits", "#d55e00", func(m cluster.Memory) float64 { return m.Logits }},
	{"B", "buffers", "#cc79a7", func(m cluster.Memory) float64 { return m.Buffers }},
	{"R", "reserved", "#888888", func(m cluster.Memory) float64 { return m.Reserved }},
}

// Sizes of the picture of memory, in pixels.
const (
	memoryLeft, memoryWide, memoryRight = 70., 600., 90.
	memoryTop, memoryRow, memoryGap     = 48., 18., 4.
	memoryText                          = `font-size="12" fill="#333"`
)

// memorySVG draws the memory of a rank of each stage as stacked bars, with a line at the part of a device that a plan
// may fill.
func memorySVG(w io.Writer, r *cluster.Run, p plannedRun) error {
	var picture svg.Picture
	device := r.Cluster.Accelerator.Memory
	most := device
	for _, k := range p.Ranks {
		most = max(most, k.Bytes)
	}
	scale := memoryWide / most
	bottom := memoryTop + float64(len(p.Ranks))*(memoryRow+memoryGap)
	picture.Text(12, 20, r.Shape.Name+" on "+r.Cluster.String(), `font-size="14" fill="#111" font-weight="bold"`)
	picture.Text(12, 38, "memory of a rank of each stage, "+r.Mesh.String(), memoryText)
	gigabytes := memoryAxis(&picture, most, scale, bottom)
	for i, k := range p.Ranks {
		y, x := memoryTop+float64(i)*(memoryRow+memoryGap), memoryLeft
		picture.Text(12, y+13, fmt.Sprint("stage ", k.Stage), memoryText)
		for _, part := range memoryParts {
			wide := part.bytes(k.Memory) * scale
			picture.Rect(x, y, wide, memoryRow, fmt.Sprintf(`fill="%s"`, part.colour))
			x += wide
		}
		picture.Text(memoryLeft+memoryWide+8, y+13, fmt.Sprintf("%.1f GiB", k.Bytes/gibi), memoryText)
	}
	usable := memoryLeft + cluster.Usable*device*scale
	var limit svg.Path
	limit.Move(usable, memoryTop-4)
	limit.Line(usable, bottom)
	picture.Path(&limit, `stroke="#000" stroke-width="1.5" stroke-dasharray="5 3"`)
	x := memoryLeft
	for _, part := range memoryParts {
		picture.Rect(x, gigabytes+14, 12, 12, fmt.Sprintf(`fill="%s"`, part.colour))
		picture.Text(x+16, gigabytes+24, part.name, memoryText)
		x += 16 + svg.Width(part.name, 12) + 26
	}
	picture.Text(memoryLeft, gigabytes+44, fmt.Sprintf("dashed: the %.1f GiB of a device that a plan may fill",
		cluster.Usable*device/gibi), memoryText)
	return picture.WriteTo(w, memoryLeft+memoryWide+memoryRight, gigabytes+56)
}

// memoryAxis draws lines at round numbers of gigabytes and returns where the axis ends.
func memoryAxis(picture *svg.Picture, most, scale, bottom float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(most/gibi)))
	for _, finer := range []float64{2, 5} {
		if most/gibi/step < 4 {
			step /= finer
		}
	}
	var lines svg.Path
	for at := 0.0; at*gibi <= most; at += step {
		x := memoryLeft + at*gibi*scale
		lines.Move(x, memoryTop-4)
		lines.Line(x, bottom+4)
		picture.Text(x, bottom+18, chart.Number(at), memoryText+` text-anchor="middle"`)
	}
	picture.Path(&lines, `stroke="#ddd"`)
	picture.Text(memoryLeft+memoryWide+18, bottom+18, "GiB", memoryText)
	return bottom + 24
}

// frontChart draws the Pareto front of meshes: time against cost, and free memory as the shape of a point.
func frontChart(name string, front []plannedRun, found []*cluster.Found) *chart.Chart {
	c := &chart.Chart{Title: name + ": the best meshes", X: chart.Axis{Label: "training (days)"}}
	y := func(p plannedRun) float64 { return p.Hours }
	label := "device hours"
	if len(front) > 0 && front[0].Cost != nil {
		y, label = func(p plannedRun) float64 { return *p.Cost }, "cost"
	}
	most := 0.0
	for _, p := range front {
		c.X.Max, most = max(c.X.Max, 1.05*p.Days), max(most, y(p))
	}
	unit := 1.0
	switch {
	case most >= 2e6:
		unit, label = 1e6, label+" (millions)"
	case most >= 2e3:
		unit, label = 1e3, label+" (thousands)"
	}
	c.Y.Label = label
	least := 0.0
	for _, most := range []float64{0.2, 0.4, 1} {
		s := chart.Series{Name: fmt.Sprintf("%.0f to %.0f %% of memory free", 100*least, 100*most), Style: chart.Points}
		for i, f := range found {
			if f.Room >= least && f.Room < most {
				s.X, s.Y = append(s.X, front[i].Days), append(s.Y, y(front[i])/unit)
			}
		}
		if least = most; len(s.X) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	return c
}
