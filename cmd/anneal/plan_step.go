package main

import (
	"fmt"
	"io"
	"strings"

	"anneal/internal/units"
	"anneal/plan/cluster"
	"anneal/program/draw"
)

// drawnRounds is the number of micro-batches per stage in the picture of a step; more would be too narrow to see.
const drawnRounds = 3

// mostInstructions is the largest step that is written as a whole.
const mostInstructions = 5_000_000

// drawStep writes the timeline if a flag names its file: a JSON file has the whole step, a picture the first and the
// last micro-batches.
func (c planCmd) drawStep(s *session, r *cluster.Run) error {
	if c.Timeline == "" {
		return nil
	}
	if strings.HasSuffix(string(c.Timeline), ".json") {
		if n := 2 * r.Micros() * r.Mesh.Pipeline * max(r.Mesh.Chunks, 1); n > mostInstructions {
			return &usageError{fmt.Sprintf("a step of about %s instructions is more than a timeline of %s",
				units.Commas(n), units.Commas(mostInstructions)),
				"try --timeline FILE.svg, which shows a part, or a smaller --batch"}
		}
		step, err := r.Simulate()
		if err != nil {
			return c.problems(err)
		}
		return s.picture(c.Timeline, step.Perfetto)
	}
	panel, err := stepPanel(r)
	if err != nil {
		return c.problems(err)
	}
	return s.picture(c.Timeline, func(w io.Writer) error { return draw.SVG(w, []draw.Panel{panel}) })
}

// printStep draws the timeline for people, if requested.
func (c planCmd) printStep(s *session, r *cluster.Run) error {
	if c.Timeline == "" {
		return nil
	}
	panel, err := stepPanel(r)
	if err != nil {
		return c.problems(err)
	}
	s.printf("a step         F forward, B backward, W gradients of weights, small for every second chunk, . idle;\n"+
		"               %s\n", panel.Title)
	if panel.Fits(s.columns()) {
		return panel.Text(s.out(), s.columns())
	}
	return panel.Overview(s.out(), s.columns())
}

// stepPanel draws a step; a long step is drawn with fewer micro-batches.
func stepPanel(r *cluster.Run) (draw.Panel, error) {
	step, micros := (*cluster.Step)(nil), r.Micros()
	title := fmt.Sprintf("%s: %s micro-batches in ", r.Mesh, units.Commas(micros))
	if micros == 1 {
		title = fmt.Sprintf("%s: 1 micro-batch in ", r.Mesh)
	}
	var err error
	if few := drawnRounds * r.Mesh.Pipeline; micros > few+r.Mesh.Pipeline {
		few += micros % r.Mesh.Pipeline
		step, err = r.First(few)
		title = fmt.Sprintf("%s: as with %d of its %s micro-batches, in ", r.Mesh, few, units.Commas(micros))
	} else {
		step, err = r.Simulate()
	}
	if err != nil {
		return draw.Panel{}, err
	}
	return draw.Panel{Title: title + stepTime(step.Timeline.Total), Lists: step.Lists, Chunks: r.Mesh.Chunks,
		Timeline: step.Timeline}, nil
}
