package main

import (
	"context"
	"fmt"
	"time"

	"anneal/bench"
	"anneal/internal/units"
)

type benchStepCmd struct {
	Shape     string `default:"tiny" enum:"micro,demo,tiny,llama-98m,gpt2-small,llama-1.1b" help:"Model: ${enum}."`
	Precision string `default:"bf16" help:"A number format: anneal explain precision lists them."`
	deviceFlag
	threadsFlag
	Seconds inSeconds `default:"10" help:"How long to measure, after the first step."`
	Batch   count     `help:"Sequences in a micro-batch; 0: as the shape says."`
	Context count     `help:"Tokens in a sequence; 0: as the shape says."`
}

func (benchStepCmd) Help() string {
	return example("anneal bench step --shape llama-98m --precision bf16 --threads 2 --json")
}

func (c benchStepCmd) Run(s *session) error {
	return s.untilSignal(func(ctx context.Context) error {
		r, err := bench.Step(ctx, bench.Options{
			Shape: c.Shape, Precision: c.Precision, Device: c.Device, Threads: int(c.Threads),
			Seconds: float64(c.Seconds), Batch: int(c.Batch), Context: int(c.Context),
			OnStep: func(steps int, measured time.Duration) {
				s.status.update(func(int) string {
					return fmt.Sprintf("%s %s  step %d  measured %.1f of %.0f s",
						c.Shape, c.Precision, steps, measured.Seconds(), float64(c.Seconds))
				})
			},
		})
		if err != nil {
			return err
		}
		s.printf("%s %s, %s: %s tok/s, median step %.1f ms, first step after %.2f s\n",
			c.Shape, c.Precision, r.Device, units.Commas(int64(r.TokensPerSecond)), r.StepMsMedian, r.FirstStepSeconds)
		share := "an unknown share of peak"
		if r.FractionOfPeak > 0 {
			share = fmt.Sprintf("%.0f%% of the peak of %s", 100*r.FractionOfPeak, units.Rate(r.PeakGFLOPS))
		}
		s.printf("%s, %s; peak memory %s\n", units.Rate(r.GFLOPS), share, memorySize(r.PeakRSSBytes))
		if r.FractionOfPeak > 0 {
			s.printf("%.1f µs a layer and micro-batch beyond arithmetic at peak\n", r.LayerOverheadUs)
		}
		return s.emit(r)
	})
}
