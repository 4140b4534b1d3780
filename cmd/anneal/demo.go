package main

import (
	"context"
	"os"

	"anneal/lab"
)

type demoCmd struct {
	Minutes amount `default:"3" placeholder:"M" help:"Training time; 0 sets no limit."`
	Steps   count  `placeholder:"N" help:"Most optimizer steps; the earlier limit counts."`
	Out     string `placeholder:"DIR" help:"Where to leave tokenizer, data and run; without it they are deleted."`
	Seed    uint64 `default:"1" help:"Seed of weights, data order and samples."`
	threadsFlag

	SampleTokens count `default:"120" placeholder:"N" help:"Length of a sample."`
}

func (demoCmd) Help() string {
	return example("anneal demo --minutes 1 --out runs/demo") +
		"\n\nThe text is the Go source on this machine, found through `go env GOROOT`."
}

func (c demoCmd) Run(s *session) error {
	out := c.Out
	if out == "" {
		dir, err := os.MkdirTemp("", "anneal-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		out = dir
	}
	return s.untilSignal(func(ctx context.Context) error {
		r, err := lab.Demo(ctx, lab.DemoOptions{
			Minutes: float64(c.Minutes), Steps: int(c.Steps), Out: out, Seed: c.Seed, Threads: int(c.Threads), SampleTokens: int(c.SampleTokens),
			OnStage: func(text string) { s.notef("%s", text) }, OnText: s.readProgress(), OnProgress: s.trainProgress(0),
			OnSample: func(text string) { s.printf("%s", text) },
		})
		if err != nil {
			return err
		}
		if r.Interrupted && c.Out == "" {
			return context.Cause(ctx)
		}
		if err := s.finishRun(r.Result, r.Run, nil); err != nil || c.Out == "" {
			return err
		}
		s.notef("try `anneal generate %s --prompt \"func main\"`", r.Run)
		return nil
	})
}
