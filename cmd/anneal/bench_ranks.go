package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"anneal/bench"
	"anneal/config"
)

type benchRanksCmd struct {
	Shape     string `default:"tiny" enum:"demo,tiny,llama-98m,gpt2-small" help:"Model: ${enum}."`
	Precision string `default:"bf16" help:"A number format: anneal explain precision lists them."`
	Ranks     count  `default:"2" help:"Ranks, which share out the threads. Under mpirun or srun: its processes."`
	threadsFlag
	Seconds inSeconds `default:"20" help:"Time for all of them together; at least three rounds."`
	Batch   count     `help:"Sequences in a micro-batch; 0: as the shape says."`
	Context count     `help:"Tokens in a sequence; 0: as the shape says."`
}

func (benchRanksCmd) Help() string {
	return example("anneal bench ranks --shape llama-98m --json", "anneal bench ranks --ranks 4 --precision fp32",
		"mpirun -n 2 --bind-to none anneal bench ranks")
}

func (c benchRanksCmd) Run(s *session) error {
	if err := s.join(&rankFlags{}); err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		r, err := c.measure(ctx, s, bench.Options{
			Shape: c.Shape, Precision: c.Precision, Threads: int(c.Threads), Seconds: float64(c.Seconds),
			Batch: int(c.Batch), Context: int(c.Context),
			OnStep: func(rounds int, measured time.Duration) {
				s.status.update(func(int) string {
					return fmt.Sprintf("%s %s  round %d  measured %.1f of %.0f s",
						c.Shape, c.Precision, rounds+1, measured.Seconds(), float64(c.Seconds))
				})
			},
		})
		if p := (config.Problem{}); errors.As(err, &p) && p.Key == "parallel.ranks" {
			p.Key = "--ranks"
			return p
		}
		if err != nil {
			return err
		}
		s.printf("%s %s, %s: steps of %s tokens in %d micro-batches, %d rounds in turn\n", r.Shape, r.Precision, r.Tier,
			thousands(int64(r.TokensPerStep)), r.MicroBatches, r.Rounds)
		s.printf("%-22s %6s %11s %10s %12s %10s\n",
			"ranks × threads", "ZeRO", "time", "tok/s", "of one rank", "of ZeRO 0")
		for i, m := range r.Cases {
			stage, ofZero := "–", "–"
			if i > 0 {
				stage, ofZero = fmt.Sprint(m.Zero), fmt.Sprintf("%.2f", m.OfZero0)
			}
			s.printf("%-22s %6s %8.1f ms %10s %12.2f %10s\n", fmt.Sprintf("%d × %d", m.Ranks, m.Threads), stage,
				m.StepMs, thousands(int64(m.TokensPerSecond)), m.OfOneRank, ofZero)
		}
		return s.emit(r)
	})
}

// measure compares ranks of this process, or those that a launcher has started.
func (c benchRanksCmd) measure(ctx context.Context, s *session, o bench.Options) (*bench.RanksResult, error) {
	if s.world.Size() > 1 {
		return bench.RanksOver(ctx, o, s.world)
	}
	return bench.Ranks(ctx, o, int(c.Ranks))
}
