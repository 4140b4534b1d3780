package main

import (
	"context"
	"fmt"
	"time"

	"anneal/internal/units"
	"anneal/prepare"
	"anneal/tokenizer"
)

type tokenizerSweepCmd struct {
	textArgs
	Vocab []int    `default:"4096,8192,16384,32768,65536" placeholder:"N" help:"Sizes to compare."`
	Val   []string `placeholder:"PATH" help:"Held-out text. Default: every 20th document."`
	Width int      `default:"768" help:"Width of the model, to count the parameters of its embedding."`
	learnFlags
	svgFlag
}

func (tokenizerSweepCmd) Help() string {
	return example(
		"anneal tokenizer sweep --vocab 4096,16384,65536 --svg vocabulary.svg --ext .go src/",
		"anneal tokenizer sweep --val news.jsonl --width 1024 --memory 4GiB crawl/",
	) + "\n\nThe text is read once and the merges are learned once: a smaller vocabulary has the first merges of " +
		"a larger one."
}

func (c tokenizerSweepCmd) Run(s *session) error {
	o := prepare.VocabularyOptions{Sizes: c.Vocab, Width: c.Width}
	var learned tokenizer.TrainReport
	var err error
	var heap int64
	if o.Train, heap, err = c.options(s, &learned); err != nil {
		return err
	}
	if err := c.spares("--svg", c.SVG); err != nil {
		return err
	}
	defer limitHeap(heap)()
	val := c.textArgs
	val.Paths = c.Val
	o.Val = val.text(s, "encoding")
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		sweep, err := prepare.SweepVocabulary(ctx, c.text(s, "counting"), o)
		if err != nil {
			return c.teachMemory(err)
		}
		s.reportText(sweep.Text)
		s.reportDropped(sweep.Learned)
		s.printf("%10s  %11s  %11s  %10s  %9s  %16s  %11s\n", "vocabulary",
			"bytes/token", "tokens/word", "tokens", "unused", "embedding params", "encode MB/s")
		for _, p := range sweep.Points {
			s.printf("%10s  %11.3f  %11.3f  %10s  %8.1f%%  %16s  %11.0f\n",
				units.Commas(p.Vocab), p.BytesPerToken, p.Fertility,
				units.Commas(p.Tokens), 100*(1-p.Coverage), units.Commas(p.EmbeddingParams), p.EncodeMBPerSecond)
		}
		if err := s.draw(sweep.Chart(), c.SVG); err != nil {
			return err
		}
		elapsed := time.Since(start)
		s.closing(fmt.Sprintf("%d vocabulary sizes compared", len(sweep.Points)), "", elapsed,
			"anneal tokenizer train --vocab N "+command(append([]string{"--out", "tok.json"}, c.words()...)...))
		return s.emit(struct {
			prepare.VocabularySweep
			Seconds float64 `json:"seconds"`
		}{sweep, elapsed.Seconds()})
	})
}
