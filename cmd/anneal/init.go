package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"anneal/corpus"
	"anneal/dataset"
	"anneal/lab"
	"anneal/plan"
	"anneal/prepare"
)

type initCmd struct {
	Dir       string    `arg:"" help:"Directory for config.yaml, and for the data set if it has to be made."`
	Data      []string  `placeholder:"PATH" help:"The text: files and directories, or one data set. Default: the Go standard library."`
	Ext       []string  `placeholder:".go" help:"Take only files with these extensions from directories."`
	TextField string    `default:"text" help:"Field with the text: a key of .jsonl lines, a column of .parquet."`
	Vocab     count     `placeholder:"N" help:"Size of the vocabulary to learn. Default: depends on the size of the text."`
	Budget    inMinutes `default:"30m" placeholder:"TIME" help:"Training time of the run, such as 30m or 8h."`
	lossFlags
	threadsFlag
}

func (initCmd) Help() string {
	return example("anneal init configs/mine --data docs/ --ext .md --budget 1h",
		"anneal init configs/mine --data data/go") +
		"\n\nText is tokenised into DIR/data. DIR/config.yaml gets the values that `anneal train --budget` derives, " +
		"each below a comment with its rule. Edit it, then train with it."
}

func (c initCmd) Run(s *session) error {
	start := time.Now()
	if err := checkBudget(c.Budget); err != nil {
		return err
	}
	if len(c.Data) == 1 && dataset.Exists(c.Data[0]) && (c.Vocab != 0 || len(c.Ext) > 0 || c.TextField != "text") {
		return &usageError{"--vocab, --ext and --text-field are for text; " + c.Data[0] + " is a data set",
			"leave them out: a data set has its tokens already"}
	}
	if len(c.Data) == 0 && (len(c.Ext) > 0 || c.TextField != "text") {
		return &usageError{"--ext and --text-field select your own text, and --data is missing",
			"name it: --data DIR"}
	}
	return s.untilSignal(func(ctx context.Context) error {
		var input corpus.Report // the report on the text, unless a data set is given
		r, err := lab.Init(ctx, lab.InitOptions{
			Dir: c.Dir, Time: c.Budget.duration(), Vocab: int(c.Vocab), Threads: int(c.Threads),
			Text: prepare.Text{
				Paths: c.Data, Options: corpus.Options{Extensions: c.Ext, TextField: c.TextField},
			},
			OnStage: func(text string) { s.notef("%s", text) }, OnText: s.readProgress(),
			OnRead: func(read corpus.Report) { input = read; s.reportText(read) }, Warn: s.warn,
		})
		switch {
		case errors.Is(err, plan.ErrBudget), errors.Is(err, fs.ErrExist):
			return asUsage(err)
		case err != nil:
			return asData(err)
		}
		printBudget(s, r.Budgeted)
		elapsed := time.Since(start)
		s.closing("a config whose comments say why", r.Config, elapsed,
			c.next(input, command("anneal", "train", r.Config, "--out", lab.RunFor(c.Dir))))
		result := map[string]any{
			"config": r.Config, "data": r.Data, "derived": r.Derived, "predicted": r.Predicted,
			"seconds": elapsed.Seconds(),
		}
		if input.Files > 0 {
			result["corpus"] = input
		}
		return s.finish(c.lossFlags, input, filepath.Join(r.Data, "dataset.json"),
			"remove "+r.Config+" and "+r.Data+" and give the same command again", result)
	})
}
