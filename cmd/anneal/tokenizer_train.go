package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"anneal/lab"
	"anneal/tokenizer"
)

type tokenizerTrainCmd struct {
	textArgs
	Vocab   int      `required:"" placeholder:"N" help:"Tokens in all: 256 bytes, the special tokens, the rest merges."`
	Out     string   `required:"" placeholder:"FILE" help:"Where the tokenizer.json goes."`
	Pattern string   `default:"llama3" help:"How text is cut before merging: gpt2, cl100k, llama3, or a regular expression."`
	Special []string `default:"<|endoftext|>" help:"Special tokens; the first ends a document."`
	threadsFlag
}

func (tokenizerTrainCmd) Help() string {
	return example("anneal tokenizer train --vocab 8192 --out tok.json --ext .go src/")
}

func (c tokenizerTrainCmd) Run(s *session) error {
	if err := checkOutput(c.Out); err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		tok, report, err := lab.TrainTokenizer(ctx, c.text(s, "counting"), tokenizer.TrainOptions{
			VocabSize: c.Vocab, Pattern: c.Pattern, Special: c.Special, Threads: int(c.Threads),
			Progress: func(p tokenizer.Progress) {
				if p.Phase == "merge" {
					s.status.update(func(int) string {
						return fmt.Sprintf("merging  %s of %s", thousands(int64(p.Merges)), thousands(int64(p.Total)))
					})
				}
			},
		})
		if err != nil {
			return asData(err)
		}
		if err := tok.Save(c.Out); err != nil {
			return err
		}
		s.reportText(report)
		rate := float64(report.Bytes) / 1e6 / time.Since(start).Seconds()
		s.printf("%s: %s tokens, pattern %s, hash %.16s…, %.1f MB/s\n", c.Out, thousands(int64(tok.VocabSize())), tok.Pattern(), tok.Hash(), rate)
		return s.emit(map[string]any{
			"out": c.Out, "vocab_size": tok.VocabSize(), "pattern": tok.Pattern(), "hash": tok.Hash(), "corpus": report, "mb_per_second": rate,
		})
	})
}

// checkOutput finds out before the work whether a file can be made at path; it makes the directory.
func checkOutput(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &usageError{"--out " + path + " is a directory", "try --out " + filepath.Join(path, "tokenizer.json")}
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cannot make the directory of --out: %w", err)
	}
	f, err := os.CreateTemp(dir, ".anneal-*")
	if err != nil {
		return fmt.Errorf("cannot write to the directory of --out: %w", err)
	}
	f.Close()
	return os.Remove(f.Name())
}
