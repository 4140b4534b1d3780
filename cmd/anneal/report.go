package main

import (
	"fmt"
	"strings"
	"time"

	"anneal/dash"
	"anneal/run"
)

type reportCmd struct {
	runsArg
	Out outFile `required:"" placeholder:"FILE" example:"report.html" help:"HTML file to write. - writes to standard output."`
}

func (reportCmd) Help() string {
	return example("anneal report runs/tiny --out report.html",
		"anneal report runs/base runs/muon --out compared.html") +
		"\n\nWrites the page of `anneal watch` with its data as one file, which needs neither a server nor a " +
		"network. Every command that trains a run writes RUN/report.html at its end."
}

func (c reportCmd) Run(s *session) error {
	start := time.Now()
	w, err := c.open(s)
	if err != nil {
		return err
	}
	w.Read()
	if err := w.WriteReport(string(c.Out)); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	s.closing("a report of "+strings.Join(c.Dirs, ", "), c.Out.String(), time.Since(start), "")
	return s.emit(map[string]any{"out": c.Out, "runs": w.Dirs(), "seconds": time.Since(start).Seconds()})
}

// reportRun writes the report of the run that the command has trained; only rank 0 does. A report that cannot be
// written is not an error of the run.
func (s *session) reportRun() {
	if s.trained == "" || s.world.Rank() > 0 {
		return
	}
	err := s.guarded(func() error {
		w, err := dash.New([]string{s.trained})
		if err != nil {
			return err
		}
		w.Read()
		return w.WriteReport(run.ReportFile(s.trained))
	})
	if err != nil {
		s.warn(fmt.Sprintf("the report of the run is not written: %v", err))
	}
}
