package main

import (
	"errors"
	"fmt"
	"os"

	"anneal/chart"
)

// svgFlag is on every command that draws a chart.
type svgFlag struct {
	SVG string `name:"svg" placeholder:"FILE" help:"Write the chart as a picture, too."`
}

// draw shows a chart for people, as wide as the terminal, and writes it to the file svg unless that is "".
func (s *session) draw(c *chart.Chart, svg string) error {
	columns := s.status.terminal()
	if columns == 0 {
		columns = 100
	}
	s.status.clear()
	if err := c.Terminal(s.out(), min(columns, 120), 24); err != nil {
		return err
	}
	if svg == "" {
		return nil
	}
	f, err := os.Create(svg)
	if err != nil {
		return fmt.Errorf("cannot write the chart: %w", err)
	}
	if err := errors.Join(c.SVG(f), f.Close()); err != nil {
		return fmt.Errorf("cannot write the chart: %w", err)
	}
	s.notef("wrote %s", svg)
	return nil
}
