package main

import (
	"context"
)

type evalCmd struct {
	runArg
	weightsFlag
	Data   string `required:"" placeholder:"DIR" help:"Data set made by anneal data build with the run's tokenizer."`
	Tokens count  `help:"Score only this many tokens; 0 scores all."`
	threadsFlag
}

func (evalCmd) Help() string { return example("anneal eval runs/go --data data/go") }

func (c evalCmd) Run(s *session) error {
	r, err := c.open(c.Dir, int(c.Threads))
	if err != nil {
		return err
	}
	defer r.Close()
	return s.untilSignal(func(ctx context.Context) error {
		e, err := r.Evaluate(ctx, c.Data, int(c.Tokens), s.status.tokensProgress("scored"))
		if err != nil {
			return err
		}
		s.printf("loss %.4f nats/token, %.4f bits/byte over %s tokens (%s of text) at step %d\n",
			e.Loss, e.BitsPerByte, thousands(e.Tokens), megabytes(e.Bytes), r.Step)
		return s.emit(map[string]any{
			"loss": number(e.Loss), "bits_per_byte": number(e.BitsPerByte), "tokens": e.Tokens, "bytes": e.Bytes, "step": r.Step,
		})
	})
}
