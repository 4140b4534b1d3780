package main

import (
	"fmt"
	"io"

	"anneal/chart"
	"anneal/internal/fileio"
)

// svgFlag is on every command that draws a chart.
type svgFlag struct {
	SVG outFile `name:"svg" placeholder:"FILE" example:"chart.svg" help:"Also write the chart as an SVG file; - is standard output."`
}

// columns returns the width of drawings: that of the terminal, up to 120 characters.
func (s *session) columns() int {
	if columns := s.status.terminal(); columns != 0 {
		return min(columns, 120)
	}
	return 100
}

// draw shows a chart for people, as wide as the terminal, and writes it to the file svg unless that is "".
func (s *session) draw(c *chart.Chart, svg outFile) error {
	s.status.clear()
	if err := c.Terminal(s.out(), s.columns(), 24); err != nil {
		return err
	}
	return s.picture(svg, c.SVG)
}

// picture writes a chart to a file, if one was asked for.
func (s *session) picture(path outFile, svg func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	if err := fileio.Write(string(path), svg); err != nil {
		return fmt.Errorf("cannot write the picture: %w", err)
	}
	s.notef("wrote %s", path)
	return nil
}
