package main

import (
	"context"
	"fmt"
	"time"

	"anneal/internal/units"
	"anneal/prepare"
)

type dataSampleCmd struct {
	Out     string `default:"data/go" placeholder:"DIR" help:"Directory of the data set."`
	Vocab   count  `default:"4096" placeholder:"N" help:"Size of the vocabulary."`
	Replace bool   `help:"Replace the data set in DIR, if there is one."`
	threadsFlag
}

func (dataSampleCmd) Help() string {
	return example("anneal data sample", "anneal data sample --vocab 512 --out data/go512") +
		"\n\nThe text is the Go standard library on this machine, found through `go env GOROOT`. A tokenizer is " +
		"learnt from it, and 2 % of the files are held out. The configs in examples/ train on data/go."
}

func (c dataSampleCmd) Run(s *session) error {
	start := time.Now()
	return s.untilSignal(func(ctx context.Context) error {
		m, err := prepare.SampleData(ctx, prepare.SampleOptions{
			Dir: c.Out, Replace: c.Replace, Vocab: int(c.Vocab), Threads: int(c.Threads),
			OnStage: func(text string) { s.notef("%s", text) }, OnText: s.readProgress(),
		})
		if err != nil {
			return asData(err)
		}
		s.printSplit("train", m.Train.Counts)
		s.printSplit("val", m.Val.Counts)
		elapsed := time.Since(start)
		s.closing(fmt.Sprintf("a data set of %s tokens, vocabulary %s",
			units.Commas(m.Train.Tokens+m.Val.Tokens), units.Commas(m.Tokenizer.VocabSize)),
			c.Out, elapsed, command(append(trainExample(), "data.path="+c.Out, "--out", "runs/tiny")...))
		return s.emit(map[string]any{
			"out": c.Out, "train": m.Train.Counts, "val": m.Val.Counts, "vocab_size": m.Tokenizer.VocabSize,
			"seconds": elapsed.Seconds(),
		})
	})
}
