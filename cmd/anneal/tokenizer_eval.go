package main

import (
	"context"
	"time"

	"anneal/lab"
)

type tokenizerEvalCmd struct {
	tokenizerArg
	textArgs
}

func (tokenizerEvalCmd) Help() string {
	return example("anneal tokenizer eval tok.json --ext .go src/")
}

func (c tokenizerEvalCmd) Run(s *session) error {
	tok, err := c.load()
	if err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		e, report, err := lab.EvalTokenizer(ctx, c.text(s, "encoding"), tok)
		if err != nil {
			return asData(err)
		}
		s.reportText(report)
		rate := float64(e.Bytes) / 1e6 / time.Since(start).Seconds()
		s.printf("%s tokens: %.3f bytes/token, %.3f tokens/word, %.1f%% of words in several tokens, %.1f MB/s\n",
			thousands(e.Tokens), e.BytesPerToken, e.Fertility, 100*e.ContinuedWords, rate)
		return s.emit(map[string]any{
			"documents": e.Documents, "bytes": e.Bytes, "tokens": e.Tokens, "words": e.Words, "bytes_per_token": e.BytesPerToken,
			"fertility": e.Fertility, "continued_words": e.ContinuedWords, "mb_per_second": rate, "corpus": report,
		})
	})
}
