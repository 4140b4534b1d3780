package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"anneal/corpus"
	"anneal/curate"
)

type dataCurateCmd struct {
	Pipeline  string   `arg:"" help:"The YAML file with the stages."`
	Paths     []string `arg:"" name:"files-or-dirs" help:"Text, source trees, .jsonl; also .gz and .zst."`
	Out       string   `placeholder:"DIR" help:"Directory of the kept documents, the journal and the report."`
	Ext       []string `placeholder:".go" help:"From directories take only files with these endings."`
	TextField string   `default:"text" help:"The field of a .jsonl line that holds the text."`
	DryRun    bool     `help:"Look at a sample and print what each rule would drop; write nothing."`
	Sample    count    `default:"1000" help:"Documents of a dry run, spread over the input."`
	TaskIndex int      `default:"0" help:"Which task of --task-count this is, from 0. Every task names the same inputs and the same --out."`
	TaskCount count    `default:"1" help:"Tasks that share the work through a common file system."`
	threadsFlag
}

func (dataCurateCmd) Help() string {
	return `A pipeline is a list of stages, each with its published bounds, or with those that differ:

    signals: true                # keep every document's numbers, in DIR/signals
    stages:
      - normalize
      - gopher_repetition
      - gopher_quality: {words: {min: 20}}
      - c4: {terminal_punctuation: false}
      - fineweb
      - pii

Stages: normalize, gopher_quality, gopher_repetition, c4, c4_paragraphs, fineweb, code, pii. A stopped command goes on where it stopped
when it is given again.

` + example("anneal data curate web.yaml --dry-run --sample 500 crawl/", "anneal data curate web.yaml --out clean crawl/",
		"anneal data build --tokenizer tok.json --out data/web clean/docs",
		"anneal data curate web.yaml --out clean --task-index $SLURM_ARRAY_TASK_ID --task-count 16 crawl/")
}

func (c dataCurateCmd) Run(s *session) error {
	switch {
	case c.Out == "" && !c.DryRun:
		return &usageError{"curate needs --out, or --dry-run", "try --out clean"}
	case c.TaskCount < 1 || c.TaskIndex < 0 || c.TaskIndex >= int(c.TaskCount):
		return &usageError{fmt.Sprintf("--task-index %d is not one of %d tasks, which count from 0", c.TaskIndex, c.TaskCount), "try --task-index 0"}
	case c.DryRun && c.Sample < 1:
		return &usageError{"--sample 0 leaves nothing to look at", "try --sample 1000"}
	}
	text, err := os.ReadFile(c.Pipeline)
	if err != nil {
		return err
	}
	p, err := curate.Parse(text, c.Pipeline)
	if err != nil {
		return asUsage(err)
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		show := s.readProgress()
		o := curate.Options{
			Pipeline: p, Paths: c.Paths, Dir: c.Out, Workers: int(c.Threads), TaskIndex: c.TaskIndex, TaskCount: int(c.TaskCount),
			Read:     corpus.Options{Extensions: c.Ext, TextField: c.TextField},
			Progress: func(read, total int64) { show("curating", read, total) },
		}
		if c.DryRun {
			o.Sample = int(c.Sample)
		}
		out, err := curate.Run(ctx, o)
		if errors.Is(err, curate.ErrOtherPipeline) {
			return asUsage(err)
		}
		if err != nil {
			return asData(err)
		}
		rate := float64(out.Report.Bytes) / 1e6 / time.Since(start).Seconds()
		c.print(s, out)
		v := map[string]any{"report": out.Report, "splits": out.Splits, "done": out.Done, "resumed": out.Resumed, "changed": out.Changed}
		if out.Resumed == 0 {
			v["mb_per_second"] = rate
		}
		if !c.DryRun {
			v["out"] = c.Out
			if out.Resumed == 0 {
				s.printf("%s: %.1f MB/s\n", c.Out, rate)
			}
		}
		return s.emit(v)
	})
}

func (c dataCurateCmd) print(s *session, out curate.Outcome) {
	r := out.Report
	if out.Changed > 0 {
		s.notef("%d splits were done before from other content: done again", out.Changed)
	}
	if left := r.Left(); left != "" {
		s.notef("%s", left)
	}
	for _, stage := range r.Stages {
		if stage.Changed > 0 {
			s.printf("%-44s changed %s documents, took out %s\n", stage.Name, thousands(int64(stage.Changed)), megabytes(max(stage.BytesCut, 0)))
		}
		for _, rule := range stage.Rules {
			if rule.Documents > 0 {
				s.printf("%-44s dropped %s documents, %.2f %%, %s\n", stage.Name+"."+rule.Name, thousands(int64(rule.Documents)),
					100*float64(rule.Documents)/float64(max(r.Documents, 1)), megabytes(rule.Bytes))
			}
		}
	}
	s.printf("kept %s of %s documents, %s of %s\n", thousands(int64(r.Kept)), thousands(int64(r.Documents)), megabytes(r.KeptBytes), megabytes(r.Bytes))
	switch {
	case c.DryRun:
	case out.Done < out.Splits:
		s.printf("%d of %d splits are done; the report comes with the last one\n", out.Done, out.Splits)
	default:
		s.printf("report: %s\n", filepath.Join(c.Out, "report.html"))
	}
}
