package main

import (
	"context"

	"anneal/bench"
	"anneal/internal/units"
	"anneal/prepare"
	"anneal/tokenizer"
)

type benchTokenizerCmd struct {
	Paths   []string `arg:"" optional:"" name:"files-or-dirs" help:"Text. Default: the Go source on this machine."`
	Vocab   int      `default:"32768" help:"Tokens of the vocabulary to learn."`
	MB      count    `name:"mb" default:"100" help:"Text to read, in MB."`
	Pattern string   `default:"llama3" help:"How text is split before merging: gpt2, cl100k, llama3, qwen2, nanochat, o200k, or a regular expression."`
	Threads count    `help:"Threads for learning; 0: one per core. Encoding is measured on one."`
}

func (benchTokenizerCmd) Help() string { return example("anneal bench tokenizer --vocab 8192 --mb 20") }

func (c benchTokenizerCmd) Run(s *session) error {
	return s.untilSignal(func(ctx context.Context) error {
		r, err := bench.Tokenizer(ctx, prepare.Text{Paths: c.Paths}, int64(c.MB)*1e6,
			tokenizer.TrainOptions{VocabSize: c.Vocab, Pattern: c.Pattern, Threads: int(c.Threads)})
		if err != nil {
			return asData(err)
		}
		s.printf("%s to %s tokens: learnt in %.2f s (%.1f MB/s); on one core, pretokens at %.1f MB/s, "+
			"encoding at %.1f MB/s cold and %.1f MB/s warm; %.2f bytes/token\n",
			units.FormatSize(r.Bytes), units.Commas(r.VocabSize), r.TrainSeconds, r.TrainMBPerSecond,
			r.PretokenizeMBPerSecond, r.EncodeColdMBPerSecond, r.EncodeWarmMBPerSecond, r.BytesPerToken)
		return s.emit(r)
	})
}
