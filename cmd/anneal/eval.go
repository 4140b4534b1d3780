package main

import (
	"context"
	"strings"
	"time"

	"anneal/config"
)

type evalCmd struct {
	runArg
	weightsFlag
	Data   []string `required:"" sep:"none" placeholder:"DIR" help:"Data set made by anneal data build with the run's tokenizer. Several, as NAME=DIR, are scored one by one and together."`
	Tokens count    `help:"Score this many tokens of the held-out text, from its start. 0: all."`
	reachFlags
	deviceFlag
	threadsFlag
}

func (evalCmd) Help() string {
	return example("anneal eval runs/go --data data/go",
		"anneal eval runs/mix --data web=data/web --data code=data/code",
		"anneal eval runs/go --data data/go --context 4x --rope-scaling yarn:4")
}

func (c evalCmd) Run(s *session) error {
	sources := []config.Source{{Path: c.Data[0]}}
	if len(c.Data) > 1 {
		var err error
		if sources, err = config.ParseSources(strings.Join(c.Data, ",")); err != nil {
			return &usageError{err.Error(), "try --data web=data/web --data code=data/code"}
		}
	}
	r, err := c.open(s, c.Dir, c.Device, c.Threads, c.reachFlags)
	if err != nil {
		return err
	}
	defer r.Close()
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		e, err := r.EvaluateSources(ctx, sources, int(c.Tokens), s.status.tokensProgress("scored"))
		if err != nil {
			return err
		}
		s.printf("loss %.4f nats/token, %.4f bits/byte over %s tokens (%s of text) at step %d, in %s\n",
			e.Loss, e.BitsPerByte, thousands(e.Tokens), megabytes(e.Bytes), r.Step, strings.ToUpper(r.Config.Precision))
		if asked := int64(c.Tokens); e.Tokens < asked {
			s.notef("the held-out text has %s targets, fewer than the %s of --tokens",
				thousands(e.Tokens), thousands(asked))
		}
		for _, x := range e.Sources {
			s.printf("  %s: loss %.4f, %.4f bits/byte over %s tokens (%s of text)\n",
				x.Name, x.Loss, x.BitsPerByte, thousands(x.Tokens), megabytes(x.Bytes))
		}
		for _, p := range e.ByPosition {
			s.printf("  positions %6d to %6d: loss %.4f, %.4f bits/byte over %s tokens\n",
				p.From, p.To-1, p.Loss, p.BitsPerByte, thousands(p.Tokens))
		}
		s.closing(thousands(e.Tokens)+" tokens scored", "", time.Since(start), "")
		report := map[string]any{
			"loss": number(e.Loss), "bits_per_byte": number(e.BitsPerByte), "tokens": e.Tokens, "bytes": e.Bytes,
			"step": r.Step, "context": r.Context(), "precision": r.Config.Precision, "damaged": faults(r.Skipped),
		}
		if e.Sources != nil {
			report["sources"] = e.Sources
		}
		if e.ByPosition != nil {
			report["by_position"] = e.ByPosition
		}
		return s.emit(report)
	})
}
