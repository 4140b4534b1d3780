package main

import (
	"errors"
	"fmt"
	"io"
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

// columns is how wide drawings are: as the terminal, up to 120 characters.
func (s *session) columns() int {
	if columns := s.status.terminal(); columns != 0 {
		return min(columns, 120)
	}
	return 100
}

// draw shows a chart for people, as wide as the terminal, and writes it to the file svg unless that is "".
func (s *session) draw(c *chart.Chart, svg picture) error {
	s.status.clear()
	if err := c.Terminal(s.out(), s.columns(), 24); err != nil {
		return err
	}
	return svg.write(s, c.SVG)
}

// write writes a picture to its file, if one was asked for.
func (p picture) write(s *session, svg func(io.Writer) error) error {
	if p == "" {
		return nil
	}
	f, err := os.Create(string(p))
	if err != nil {
		return fmt.Errorf("cannot write the picture: %w", err)
	}
	if err := errors.Join(svg(f), f.Close()); err != nil {
		return fmt.Errorf("cannot write the picture: %w", err)
	}
	s.notef("wrote %s", p)
	return nil
}
