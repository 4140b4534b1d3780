package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"anneal/chart"
)

// svgFlag is on every command that draws a chart.
type svgFlag struct {
	SVG picture `name:"svg" placeholder:"FILE" help:"Write the chart as a picture, too."`
}

// picture is a file for a chart. That it cannot be made is said before the work whose outcome it would show.
type picture string

// Validate is called by the parser, which names the flag.
func (p picture) Validate() error {
	if info, err := os.Stat(string(p)); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory, where a file for the picture belongs", p)
	}
	if info, err := os.Stat(filepath.Dir(string(p))); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no directory %s for the picture", filepath.Dir(string(p)))
	}
	return nil
}

// draw shows a chart for people, as wide as the terminal, and writes it to the file svg unless that is "".
func (s *session) draw(c *chart.Chart, svg picture) error {
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
	f, err := os.Create(string(svg))
	if err != nil {
		return fmt.Errorf("cannot write the chart: %w", err)
	}
	if err := errors.Join(c.SVG(f), f.Close()); err != nil {
		return fmt.Errorf("cannot write the chart: %w", err)
	}
	s.notef("wrote %s", svg)
	return nil
}
