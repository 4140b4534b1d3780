package main

import (
	"context"
	"fmt"
	"slices"

	"anneal/bench"
	"anneal/internal/units"
)

type benchCoresCmd struct {
	Shape     string    `default:"llama-98m" enum:"demo,tiny,llama-98m,gpt2-small" help:"Model: ${enum}."`
	Precision string    `default:"bf16" help:"A number format: anneal explain precision lists them."`
	Threads   []int     `default:"2,4,8,16,32,64,128" placeholder:"N" help:"Numbers of cores to simulate."`
	Seconds   inSeconds `default:"4" help:"Time for each number of cores; at least four steps."`
	Batch     count     `help:"Sequences in a micro-batch; 0: as the shape says."`
	Context   count     `help:"Tokens in a sequence; 0: as the shape says."`
}

func (benchCoresCmd) Help() string {
	return example("anneal bench cores", "anneal bench cores --shape tiny --precision fp32 --threads 8,16 --json") +
		"\n\nRuns all tasks of a training step on one core, times each, and deals them to as many cores as you " +
		"ask for.\nWhat cores share, such as memory and power, is not simulated: a step on real cores is slower."
}

func (c benchCoresCmd) Run(s *session) error {
	for _, n := range c.Threads {
		if n < 1 || n > 512 {
			return &usageError{fmt.Sprintf("--threads %d is not from 1 to 512", n), "try --threads 8,64"}
		}
	}
	threads := append([]int{1}, c.Threads...)
	slices.Sort(threads)
	return s.untilSignal(func(ctx context.Context) error {
		r, err := bench.Cores(ctx, bench.Options{
			Shape: c.Shape, Precision: c.Precision, Seconds: float64(c.Seconds), Batch: int(c.Batch),
			Context: int(c.Context),
		}, slices.Compact(threads), func(n int) {
			s.status.update(func(int) string { return fmt.Sprintf("%s %s  %d cores", c.Shape, c.Precision, n) })
		})
		if err != nil {
			return err
		}
		printCoresResult(s, r)
		return s.emit(r)
	})
}

func printCoresResult(s *session, r *bench.CoresResult) {
	s.printf("%s %s, %s: a step of %s tokens, simulated from the times of its tasks on one core\n",
		r.Shape, r.Precision, r.Tier, units.Commas(r.Tokens))
	s.printf("%5s %11s %8s %10s   %9s %9s %9s %9s %9s\n",
		"cores", "a step", "speed-up", "efficiency", "work", "waiting", "handing", "alone", "all work")
	for _, c := range r.Cases {
		s.printf("%5d %8.1f ms %7.1f× %9.0f%%   %6.1f ms %6.1f ms %6.2f ms %6.2f ms %8.2f×\n", c.Threads, c.StepMs,
			c.Speedup, 100*c.Efficiency, c.WorkMs, c.WaitMs, c.HandingMs, c.AloneMs, c.WorkOfOne)
	}
	last := r.Cases[len(r.Cases)-1]
	s.printf("work: an even share of %d tasks of %d kernels; waiting: for the core that finishes last;\n"+
		"handing: 0.1 µs for each message to or from a core; alone: what one core does while the others wait\n",
		last.Tasks, last.Jobs)
}
