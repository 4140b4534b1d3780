package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"anneal/config"
	"anneal/lab"
	"anneal/run"
)

type lrFindCmd struct {
	configArgs
	Low   amount `default:"1e-6" help:"Learning rate of the first step."`
	High  amount `default:"10" help:"Learning rate of the last step."`
	Steps int    `default:"100" help:"Most steps. The test ends early if the loss diverges."`
	runThreadsFlag
	svgFlag
}

func (lrFindCmd) Help() string {
	return example("anneal lr-find examples/tiny.yaml data.path=data/go --svg lr.svg",
		"anneal lr-find examples/tiny.yaml data.path=data/go optimizer.name=lion --low 1e-7 --high 1 --steps 60") +
		"\n\nThe learning rate rises with every step, and the loss shows which rates learn and which diverge. " +
		"It works with every\noptimizer; for adafactor it turns off the relative step, which caps the rate. " +
		"It starts from initial weights and keeps no run.\n" +
		"For a long run use the lower end of the range, or less: try three rates for a few percent of the run,\n" +
		"or tune a narrow model with model.mup=true."
}

func (c lrFindCmd) Run(s *session) error {
	start := time.Now()
	c.remark(s)
	cfg, err := run.LoadConfig(config.Sources{File: c.Config, Overrides: c.Overrides})
	if err != nil {
		return err
	}
	return s.whileTraining(func(ctx context.Context) error {
		r, err := lab.FindLR(ctx, lab.LROptions{
			Config: cfg, Threads: int(c.Threads), Low: float64(c.Low), High: float64(c.High), Steps: c.Steps,
			OnStep: func(step int, lr, loss float64) {
				s.status.update(func(int) string {
					return fmt.Sprintf("step %d/%d  lr %.1e  loss %.3f", step, c.Steps, lr, loss)
				})
			},
		})
		if err != nil {
			return err
		}
		if err := s.draw(r.Chart(), c.SVG); err != nil {
			return err
		}
		s.printf("\nworth a try    optimizer.lr from %.2g to %.2g; for a long run, the lower end or less\n",
			r.Low, r.High)
		s.printf("falls fastest  at %.2g\n", r.Steepest)
		s.printf("lowest loss    %.3f nats/token, at %.2g\n", r.Loss, r.Lowest)
		if r.Diverges != nil {
			s.printf("diverges       from %.2g on\n", *r.Diverges)
		}
		elapsed := time.Since(start)
		s.closing(fmt.Sprintf("%d steps tried", len(r.Points)), "", elapsed, c.next(r))
		return s.emit(struct {
			*lab.LRRange
			Seconds float64 `json:"seconds"`
		}{r, elapsed.Seconds()})
	})
}

// next returns the command that compares the ends of the range and its middle in short runs.
func (c lrFindCmd) next(r *lab.LRRange) string {
	words := append([]string{"anneal", "lab", "ablate", c.Config}, c.Overrides...)
	words = append(words, fmt.Sprintf("optimizer.lr=%.2g", r.Low))
	for _, rate := range []float64{math.Sqrt(r.Low * r.High), r.High} {
		words = append(words, "--with", fmt.Sprintf("optimizer.lr=%.2g", rate))
	}
	return command(append(words, "--out", "runs/rates")...)
}
