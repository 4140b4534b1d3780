package main

import (
	"context"
	"fmt"
	"time"

	"anneal/bench"
	"anneal/internal/units"
)

type benchGenerateCmd struct {
	Shape     string `default:"llama-98m" enum:"micro,demo,tiny,llama-98m,gpt2-small,llama-1.1b" help:"Model: ${enum}."`
	Precision string `default:"bf16" help:"A number format: anneal explain precision lists them."`
	dtypeFlag
	deviceFlag
	threadsFlag
	Sequences []int     `default:"1,4,16" placeholder:"N" help:"Sequences that are continued together."`
	Seconds   inSeconds `default:"10" help:"How long to measure."`
}

func (benchGenerateCmd) Help() string {
	return example("anneal bench generate",
		"anneal bench generate --dtype q8_0",
		"anneal bench generate --precision fp32 --threads 1 --sequences 1,2,4,8 --json") +
		"\n\nContinues sequences with random weights, one token of each in a pass, and reads prompts. A pass reads" +
		" all\nweights once: the memory bandwidth limits a few sequences, and arithmetic limits many."
}

func (c benchGenerateCmd) Run(s *session) error {
	if len(c.Sequences) == 0 {
		return &usageError{"--sequences is empty", "try --sequences 1,4,16"}
	}
	for _, n := range c.Sequences {
		if n < 1 || n > 256 {
			return &usageError{fmt.Sprintf("--sequences %d is not a number from 1 to 256", n), "try --sequences 1,4,16"}
		}
	}
	return s.untilSignal(func(ctx context.Context) error {
		r, err := bench.Generate(ctx, bench.Options{
			Shape: c.Shape, Precision: c.Precision, Device: c.Device, Threads: int(c.Threads), Eight: c.eight(),
			Seconds: float64(c.Seconds),
			OnStep: func(_ int, measured time.Duration) {
				s.status.update(func(int) string {
					return fmt.Sprintf("%s %s  measured %.1f of %.0f s",
						c.Shape, c.Precision, measured.Seconds(), float64(c.Seconds))
				})
			},
		}, c.Sequences)
		if err != nil {
			return err
		}
		s.printf("sequences  tokens/s   ms/pass      GB/s  of reading  of peak\n")
		for _, x := range r.Cases {
			s.printf("%s\n", x)
		}
		weights := "weights"
		if r.Eight {
			weights = "weights in 8 bits"
		}
		s.printf("%s %s, %s: a pass reads %s of %s; memory is read at %.1f GB/s\n",
			c.Shape, c.Precision, r.Device, memorySize(r.WeightBytes), weights, r.BandwidthGBs)
		s.printf("prompts %s tokens/s, %.0f%% of evaluation\n",
			units.Commas(int64(r.PromptTokensPerSecond)), 100*r.PromptTokensPerSecond/r.ForwardTokensPerSecond)
		return s.emit(r)
	})
}
