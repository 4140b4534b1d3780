package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"anneal/bench"
	"anneal/config"
	"anneal/internal/units"
)

type benchRanksCmd struct {
	Shape     string `default:"tiny" enum:"demo,tiny,llama-98m,gpt2-small" help:"Model: ${enum}."`
	Precision string `default:"bf16" help:"A number format: anneal explain precision lists them."`
	Axis      string `default:"zero" enum:"zero,tensor,context,pipeline" help:"How the ranks share the work: ${enum}."`
	Ranks     count  `default:"2" help:"Number of ranks, which divide the threads among them. Under mpirun or srun: the number of its processes."`
	threadsFlag
	Seconds inSeconds `default:"20" help:"Time for all of them together; at least three rounds."`
	Layers  count     `help:"Layers of the model; 0: as the shape says."`
	Batch   count     `help:"Sequences in a micro-batch; 0: as the shape says, a quarter of it with --axis pipeline."`
	Context count     `help:"Tokens in a sequence; 0: as the shape says, 4,096 with --axis context."`
}

func (benchRanksCmd) Help() string {
	return example("anneal bench ranks --shape llama-98m --json", "anneal bench ranks --ranks 4 --precision fp32",
		"anneal bench ranks --axis tensor", "anneal bench ranks --axis context",
		"anneal bench ranks --axis pipeline --layers 8",
		"mpirun -n 2 --bind-to none anneal bench ranks")
}

func (c benchRanksCmd) Run(s *session) error {
	if err := s.join(&rankFlags{}); err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		r, err := c.measure(ctx, s, bench.Options{
			Shape: c.Shape, Precision: c.Precision, Threads: int(c.Threads), Seconds: float64(c.Seconds),
			Layers: int(c.Layers), Batch: int(c.Batch), Context: int(c.Context),
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
		printRanksResult(s, r)
		return s.emit(r)
	})
}

// measure compares ranks of this process, or ranks that a launcher has started.
func (c benchRanksCmd) measure(ctx context.Context, s *session, o bench.Options) (*bench.RanksResult, error) {
	if s.world.Size() > 1 {
		return bench.RanksOver(ctx, o, c.Axis, s.world)
	}
	return bench.Ranks(ctx, o, c.Axis, int(c.Ranks))
}

func printRanksResult(s *session, r *bench.RanksResult) {
	micro := "1 micro-batch"
	if r.MicroBatches > 1 {
		micro = fmt.Sprintf("%d micro-batches", r.MicroBatches)
	}
	s.printf("%s %s, %s: steps of %s tokens in %s, rows of %s tokens, %d rounds in turn\n",
		r.Shape, r.Precision, r.Tier, units.Commas(r.TokensPerStep), micro, units.Commas(r.Context), r.Rounds)
	s.printf("%-16s %15s %11s %10s %12s %10s\n",
		"", "ranks × threads", "time", "tok/s", "of one rank", "of "+r.Cases[1].Name)
	for i, m := range r.Cases {
		ofFirst := "–"
		if i > 0 {
			ofFirst = fmt.Sprintf("%.2f", m.OfFirst)
		}
		s.printf("%-16s %15s %8.1f ms %10s %12.2f %10s\n", m.Name, fmt.Sprintf("%d × %d", m.Ranks, m.Threads),
			m.StepMs, units.Commas(int64(m.TokensPerSecond)), m.OfOneRank, ofFirst)
	}
	if r.Axis == "pipeline" {
		printPipelines(s, r)
	}
}

// printPipelines compares pipelines with a simulation from the measured times of their parts.
func printPipelines(s *session, r *bench.RanksResult) {
	s.printf("\n%-16s %8s %9s %8s %10s %12s   %s\n", "", "ideal", "of ideal", "idle", "simulated", "computing",
		"a part's forward + backward (+ weights), ms")
	for _, m := range r.Cases[1:] {
		p, parts := m.Pipeline, []string{}
		for _, c := range p.Parts {
			part := fmt.Sprintf("%.1f + %.1f", c.ForwardMs, c.BackwardMs)
			if c.BackwardWeightsMs > 0 {
				part += fmt.Sprintf(" + %.1f", c.BackwardWeightsMs)
			}
			parts = append(parts, part)
		}
		s.printf("%-16s %8.2f %9.2f %7.1f%% %9.1f%% %9.1f ms   %s\n", m.Name, p.Ideal, p.OfIdeal, 100*p.IdleShare,
			100*p.SimulatedIdleShare, p.ComputeMs, strings.Join(parts, " | "))
	}
	s.printf("ideal: the speed of one rank, less the idle time of the schedule, simulated with these times\n")
}
