package main

import (
	"context"
	"strings"
	"time"

	"anneal/lab"
)

type demoCmd struct {
	Minutes inMinutes `default:"3" env:"ANNEAL_DEMO_MINUTES" placeholder:"M" help:"Training time, such as 90s, 1h30m, or a number of minutes; 0: no limit."`
	Steps   count     `placeholder:"N" help:"Most optimizer steps. Training stops at whichever limit it reaches first."`
	Out     string    `default:"anneal-demo" placeholder:"DIR" help:"Directory for the data set and the run. An existing run is resumed."`
	Seed    uint64    `default:"1" help:"Seed of the weights, the data order and the samples."`
	threadsFlag

	SampleTokens count `default:"120" placeholder:"N" help:"Tokens in a sample."`
}

func (demoCmd) Help() string {
	return example("anneal demo", "anneal demo --minutes 30 --out runs/demo-30") +
		"\n\nThe text is the Go source on this machine, found through `go env GOROOT`. Nothing is ever deleted."
}

func (c demoCmd) Run(s *session) error {
	start := time.Now()
	s.noteKernels()
	return s.whileTraining(func(ctx context.Context) error {
		r, err := lab.Demo(ctx, lab.DemoOptions{
			Minutes: float64(c.Minutes), Steps: int(c.Steps), Out: c.Out, Seed: c.Seed, Threads: int(c.Threads),
			SampleTokens: int(c.SampleTokens),
			OnStage:      func(text string) { s.notef("%s", text) }, OnText: s.readProgress(),
			OnProgress: s.trainProgress(0),
			OnSample:   func(text string) { s.printf("%s", text) },
		})
		if err != nil {
			return err
		}
		return s.finishRun(r.Result, finished{
			dir: r.Run, elapsed: time.Since(start),
			next: strings.Join([]string{
				command("anneal", "generate", r.Run, "--prompt", "func main"),
				command("anneal", "eval", r.Run, "--data", r.Data),
				"anneal demo --minutes 30 --out anneal-demo-30   # a longer run",
				"anneal data --help                              # your own text",
			}, "\n      "),
		})
	})
}
