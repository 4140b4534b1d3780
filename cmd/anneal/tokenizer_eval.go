package main

import (
	"context"
	"errors"
	"time"

	"anneal/corpus"
	"anneal/internal/units"
	"anneal/prepare"
	"anneal/tokenizer"
)

type tokenizerEvalCmd struct {
	tokenizerArg
	textArgs
	By string `placeholder:"GROUP" help:"Also measure groups of documents: by ext, dir, file, script (that of most letters), or model:FILE (the label that a fastText model gives, such as the language)."`
}

func (tokenizerEvalCmd) Help() string {
	return example("anneal tokenizer eval tok.json --ext .go src/", "anneal tokenizer eval tok.json --by script crawl/",
		"anneal tokenizer eval tok.json --by model:lid.176.ftz crawl/") +
		"\n\nparity: tokens per byte, divided by that of the best group. Languages need different numbers of bytes " +
		"for the same content,\n" +
		"so only parallel text shows what the content costs in tokens. Words are separated by white space, " +
		"which some scripts lack."
}

func (c tokenizerEvalCmd) Run(s *session) error {
	tok, err := c.load()
	if err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		text := c.text(s, "encoding")
		text.Options.Skip = tokenizer.Files(c.Tokenizer)
		by, err := prepare.GroupBy(text, c.By)
		if errors.Is(err, prepare.ErrGroup) {
			return &usageError{err.Error(), "try --by ext, dir, file, script or model:FILE with a fastText model"}
		}
		if err != nil {
			return asData(err)
		}
		e, report, err := prepare.EvalTokenizer(ctx, text, tok, by)
		if err != nil {
			return asData(err)
		}
		s.reportText(report)
		all := e.Total()
		elapsed := time.Since(start)
		rate := float64(all.Bytes) / 1e6 / elapsed.Seconds()
		s.printf("%s tokens: %.3f bytes/token, %.3f tokens/word, %.1f%% of words in several tokens, %.1f%% of tokens "+
			"are single bytes, %.1f%% of the vocabulary in use, %.1f MB/s\n",
			units.Commas(all.Tokens), all.BytesPerToken, all.Fertility, 100*all.ContinuedWords,
			100*all.SingleByteTokens, 100*all.Coverage, rate)
		out := struct {
			tokenizer.Stats
			Groups      []tokenizer.Group `json:"groups,omitempty"`
			MBPerSecond float64           `json:"mb_per_second"`
			Corpus      corpus.Report     `json:"corpus"`
			Seconds     float64           `json:"seconds"`
		}{Stats: all, MBPerSecond: rate, Corpus: report, Seconds: elapsed.Seconds()}
		if c.By != "" {
			out.Groups = e.Groups()
			printGroups(s, c.By, out.Groups)
		}
		s.closing(units.FormatSize(all.Bytes)+" encoded", "",
			elapsed, command(append([]string{"anneal", "tokenizer", "sweep"}, c.words()...)...))
		return s.emit(out)
	})
}

// mostGroups is how many groups are printed; --json has them all.
const mostGroups = 40

func printGroups(s *session, by string, groups []tokenizer.Group) {
	s.printf("\n%-20s %9s %10s %11s %11s %11s %12s %10s %7s\n", "by "+by,
		"documents", "MB", "bytes/token", "chars/token", "tokens/word", "single bytes", "vocabulary", "parity")
	for i, g := range groups {
		if i == mostGroups {
			s.printf("and %d more: --json has them all\n", len(groups)-i)
			break
		}
		s.printf("%-20s %9s %10.3f %11.3f %11.3f %11.3f %11.1f%% %9.1f%% %7.2f\n",
			g.Name, units.Commas(g.Documents), float64(g.Bytes)/1e6,
			g.BytesPerToken, g.CharactersPerToken, g.Fertility, 100*g.SingleByteTokens, 100*g.Coverage, g.Parity)
	}
}
