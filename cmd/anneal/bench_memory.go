package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"anneal/bench"
	"anneal/config"
)

type benchMemoryCmd struct {
	Shape     string   `default:"tiny" enum:"demo,tiny,llama-98m" help:"Model: ${enum}."`
	Precision string   `default:"bf16" help:"A number format: anneal explain precision lists them."`
	Strategy  []string `default:"selective,sqrt,every:2,every_layer" placeholder:"NAME" help:"Values of memory.recompute to compare with none."`
	threadsFlag
	Seconds inSeconds `default:"20" help:"Time for all of them together; at least three rounds."`
	Batch   count     `help:"Sequences in a micro-batch; 0: as the shape says."`
	Context count     `help:"Tokens in a sequence; 0: as the shape says."`
}

func (benchMemoryCmd) Help() string {
	return example("anneal bench memory --shape llama-98m --json",
		"anneal bench memory --strategy every_layer,budget:100MiB")
}

func (c benchMemoryCmd) Run(s *session) error {
	return s.untilSignal(func(ctx context.Context) error {
		r, err := bench.Memory(ctx, bench.Options{
			Shape: c.Shape, Precision: c.Precision, Threads: int(c.Threads), Seconds: float64(c.Seconds),
			Batch: int(c.Batch), Context: int(c.Context),
			OnStep: func(rounds int, measured time.Duration) {
				s.status.update(func(int) string {
					return fmt.Sprintf("%s %s  round %d  measured %.1f of %.0f s",
						c.Shape, c.Precision, rounds+1, measured.Seconds(), float64(c.Seconds))
				})
			},
		}, c.Strategy)
		if err != nil {
			return asStrategy(err)
		}
		s.printf("%s %s, %s, %d threads, %d sequences of %d tokens: forward and backward, the fastest of %d rounds\n",
			r.Shape, r.Precision, r.Tier, r.Threads, r.Sequences, r.Context, r.Rounds)
		s.printf("%-16s %12s %12s %6s %10s %11s %14s\n", "strategy",
			"activations", "planned", "less", "time", "extra time", "extra compute")
		for _, m := range r.Cases {
			s.printf("%-16s %12s %12s %5.1f× %7.1f ms %+10.1f%% %+13.1f%%\n",
				m.Strategy, memorySize(m.ActivationBytes), memorySize(m.PlannedBytes),
				m.Less, m.StepMs, 100*m.ExtraTime, 100*m.ExtraCompute)
		}
		return s.emit(r)
	})
}

// asStrategy turns an error of the key memory.recompute, which --strategy sets, into an error of the flag.
func asStrategy(err error) error {
	var p config.Problem
	if !errors.As(err, &p) || p.Key != "memory.recompute" {
		return err
	}
	flag := strings.NewReplacer("memory.recompute = ", "--strategy ", "memory.recompute: ", "--strategy: ",
		"model.layers = ", "", "train.micro_batch", "--batch")
	return &usageError{flag.Replace(p.Message), "try " + flag.Replace(p.Try)}
}
