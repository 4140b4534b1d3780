package main

import (
	"fmt"
	"strings"
	"time"

	"anneal/internal/units"
	"anneal/prepare"
)

type dataInspectCmd struct {
	Dir     string `arg:"" help:"Directory of the data set."`
	Context int    `default:"2048" placeholder:"N" help:"Tokens in a row, like model.context."`
	svgFlag
}

func (dataInspectCmd) Help() string {
	return example("anneal data inspect data/go --context 1024", "anneal data inspect data/go --json --svg "+
		"lengths.svg") +
		"\n\nFor each value of data.packing, in one pass over the training split:" +
		" trained: share of positions that are neither padding nor a prompt; cut: documents split across rows;" +
		"\nleft out: tokens not used. It reads the document index, not the tokens."
}

func (c dataInspectCmd) Run(s *session) error {
	if c.Context < 1 || c.Context > 1<<20 {
		return &usageError{fmt.Sprintf("--context %d is not a number of tokens from 1 to 1048576", c.Context),
			"try --context 2048"}
	}
	start := time.Now()
	r, err := prepare.InspectData(c.Dir, c.Context)
	if err != nil {
		return asData(err)
	}
	s.printSplit("train", r.Train)
	s.printSplit("val", r.Val)
	s.printLengths(r)
	if len(r.Packings) > 0 {
		s.printPackings(r)
	}
	if err := s.picture(c.SVG, r.Chart().SVG); err != nil {
		return err
	}
	elapsed := time.Since(start)
	s.closing("inspected, nothing written", "", elapsed, nextOfData(c.Dir, r.Train))
	return s.emit(struct {
		*prepare.DataReport
		Seconds float64 `json:"seconds"`
	}{r, elapsed.Seconds()})
}

// printPackings shows the effect of each packing on the data.
func (s *session) printPackings(r *prepare.DataReport) {
	s.printf("\n%-12s %14s %10s %15s %17s\n", "packing",
		"rows of "+units.Commas(r.Context), "trained", "documents cut", "tokens left out")
	for _, u := range r.Packings {
		s.printf("%-12s %14s %9.3f%% %15s %17s\n",
			u.Packing, units.Commas(u.Rows), 100*u.Share(), units.Commas(u.Cut), units.Commas(u.LeftOut))
	}
}

// printLengths draws a histogram of document lengths.
func (s *session) printLengths(r *prepare.DataReport) {
	l, all := r.Lengths, r.Measured()
	if len(l.Bins) == 0 {
		return
	}
	s.printf("\ndocument lengths in the %s split, in tokens: shortest %s, median %s, 90%% up to %s, 99%% up to %s, "+
		"longest %s\n", r.LengthsOf, units.Commas(l.Shortest),
		units.Commas(l.Median), units.Commas(l.P90), units.Commas(l.P99), units.Commas(l.Longest))
	most := uint64(1)
	for _, b := range l.Bins {
		most = max(most, b.Documents)
	}
	width := max(s.columns()-52, 10)
	for _, b := range l.Bins {
		bar := strings.Repeat("█", int(b.Documents*uint64(width)/most))
		s.printf("  %11s to %-11s %11s  %5.1f%% of tokens  %s\n",
			units.Commas(b.From), units.Commas(b.To-1), units.Commas(b.Documents),
			100*float64(b.Tokens)/float64(all.Tokens), bar)
	}
}
