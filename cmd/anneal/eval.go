package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"anneal/config"
	"anneal/internal/units"
	"anneal/train"
	"anneal/use"
)

type evalCmd struct {
	runArg
	weightsFlag
	dtypeFlag
	Data   []string `sep:"none" placeholder:"DIR" help:"Data set made by anneal data build with the run's tokenizer. Several, as NAME=DIR, are scored one by one and together."`
	Split  string   `default:"val" enum:"val,train" help:"Score the held-out text (val), or the text that was trained on (train)."`
	Tokens count    `help:"Score this many tokens of the text, from its start. 0: all."`

	Tasks   string  `placeholder:"PATH" help:"Evaluate the tasks in a YAML file of lm-evaluation-harness, or in all .yaml files of a directory. Their data must be local JSONL or parquet."`
	Limit   count   `help:"With --tasks: take the first N items of each task. 0: all."`
	By      string  `placeholder:"FIELD" help:"With --tasks: also print the figures for each value of this field of the items, such as a domain."`
	Samples outFile `placeholder:"FILE.jsonl" help:"With --tasks: write each item with the model's answers to this file, one a line."`
	reachFlags
	deviceFlag
	threadsFlag
}

func (evalCmd) Help() string {
	return example("anneal eval runs/go --data data/go",
		"anneal eval runs/sums --data data/sums --split train",
		"anneal eval runs/mix --data web=data/web --data code=data/code",
		"anneal eval runs/go --data data/go --context 4x --rope-scaling yarn:4",
		"anneal eval runs/go --tasks examples/tasks --samples answers.jsonl")
}

func (c evalCmd) Run(s *session) error {
	c.Eight = c.eight()
	if err := c.checkTasks(); err != nil {
		return err
	}
	if c.Tasks != "" {
		return c.onTasks(s)
	}
	return c.onText(s)
}

// onText scores data sets.
func (c evalCmd) onText(s *session) error {
	sources, err := c.sources()
	if err != nil {
		return &usageError{err.Error(), "try --data web=data/web --data code=data/code"}
	}
	r, err := c.open(s, c.Dir, c.Device, c.Threads, c.reachFlags)
	if err != nil {
		return err
	}
	defer r.Close()
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		e, err := r.EvaluateSplit(ctx, sources, c.Split == "train", int(c.Tokens), s.status.tokensProgress("scored"))
		if err != nil {
			return err
		}
		c.printScored(s, r, e)
		s.closing(units.Commas(e.Tokens)+" tokens scored", "", time.Since(start), "")
		return s.emit(c.scoredJSON(r, e))
	})
}

// sources returns the data sets to score. A single one that exists, or has no name, is a path as it stands.
func (c evalCmd) sources() (list []config.Source, err error) {
	if len(c.Data) == 1 {
		path := c.Data[0]
		if _, err := os.Stat(path); err == nil || !strings.Contains(path, "=") {
			return []config.Source{{Path: path}}, nil
		}
	}
	for _, text := range c.Data {
		s, err := config.ParseSource(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(o config.Source) bool { return o.Name == s.Name }) {
			return nil, fmt.Errorf("two data sets have the name %q", s.Name)
		}
		list = append(list, s)
	}
	return list, nil
}

func (c evalCmd) printScored(s *session, r *use.Trained, e train.EvalResult) {
	s.printf("loss %.4f nats/token, %.4f bits/byte over %s tokens (%s of text) at step %d, in %s\n",
		e.Loss, e.BitsPerByte, units.Commas(e.Tokens), units.FormatSize(e.Bytes), r.Step, r.Numbers())
	if asked := int64(c.Tokens); e.Tokens < asked {
		s.notef("the text has %s targets, fewer than the %s of --tokens",
			units.Commas(e.Tokens), units.Commas(asked))
	}
	for _, x := range e.Sources {
		s.printf("  %s: loss %.4f, %.4f bits/byte over %s tokens (%s of text)\n",
			x.Name, x.Loss, x.BitsPerByte, units.Commas(x.Tokens), units.FormatSize(x.Bytes))
	}
	if a := e.Answers; a.Targets > 0 {
		s.printf("  %.1f %% of these tokens are the most likely one", 100*a.Accuracy())
		if a.Documents > 0 {
			s.printf("; %s of %s documents are right as a whole", units.Commas(a.Exact), units.Commas(a.Documents))
		}
		s.printf("\n")
		if a.Cut > 0 && a.Exact > 0 { // of a text where whole documents can be right
			s.notef("rows of %s tokens cut %s: whether a cut document is right as a whole is unknown",
				units.Commas(r.Context()), units.Count(int(a.Cut), "document"))
		}
	}
	for _, p := range e.ByPosition {
		s.printf("  positions %6d to %6d: loss %.4f, %.4f bits/byte over %s tokens\n",
			p.From, p.To-1, p.Loss, p.BitsPerByte, units.Commas(p.Tokens))
	}
}

func (c evalCmd) scoredJSON(r *use.Trained, e train.EvalResult) map[string]any {
	report := map[string]any{
		"loss": number(e.Loss), "bits_per_byte": number(e.BitsPerByte), "tokens": e.Tokens, "bytes": e.Bytes,
		"step": r.Step, "context": r.Context(), "precision": r.Config.Precision,
		"dtype": c.Dtype, "damaged": faults(r.Skipped),
	}
	if a := e.Answers; a.Targets > 0 {
		report["accuracy"], report["exact_match"], report["answers"] = number(a.Accuracy()),
			number(a.ExactMatch()), a
	}
	if e.Sources != nil {
		report["sources"] = e.Sources
	}
	if e.ByPosition != nil {
		report["by_position"] = e.ByPosition
	}
	return report
}
