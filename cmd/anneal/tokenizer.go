package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"anneal/corpus"
	"anneal/lab"
	"anneal/tokenizer"
)

type tokenizerCmd struct {
	Train  tokenizerTrainCmd  `cmd:"" help:"Learn a byte-level BPE vocabulary."`
	Encode tokenizerEncodeCmd `cmd:"" help:"Turn text into token ids."`
	Decode tokenizerDecodeCmd `cmd:"" help:"Turn token ids into text."`
	Eval   tokenizerEvalCmd   `cmd:"" help:"Measure how well a tokenizer suits a text."`
}

// textArgs names the text that a command reads.
type textArgs struct {
	Paths     []string `arg:"" name:"files-or-dirs" help:"Text, source trees, .jsonl; also .gz and .zst."`
	Ext       []string `placeholder:".go" help:"From directories take only files with these endings."`
	TextField string   `default:"text" help:"The field of a .jsonl line that holds the text."`
}

// text is the text that the arguments name, with progress on the screen.
func (a textArgs) text(s *session, what string) lab.Text {
	show := s.readProgress()
	return lab.Text{
		Paths: a.Paths, Options: corpus.Options{Extensions: a.Ext, TextField: a.TextField},
		Progress: func(read, total int64) { show(what, read, total) },
	}
}

// readProgress returns what shows how much of a text is read.
func (s *session) readProgress() func(what string, read, total int64) {
	var what string
	var show func(int64)
	return func(now string, read, total int64) {
		if show == nil || now != what {
			what, show = now, s.status.bytesProgress(now, total)
		}
		show(read)
	}
}

type tokenizerTrainCmd struct {
	textArgs
	Vocab   int      `required:"" placeholder:"N" help:"Tokens in all: 256 bytes, the special tokens, the rest merges."`
	Out     string   `required:"" placeholder:"FILE" help:"Where the tokenizer.json goes."`
	Pattern string   `default:"llama3" help:"How text is cut before merging: gpt2, cl100k, llama3, or a regular expression."`
	Special []string `default:"<|endoftext|>" help:"Special tokens; the first ends a document."`
	Threads int      `help:"Worker threads; 0 takes all."`
}

func (tokenizerTrainCmd) Help() string {
	return example("anneal tokenizer train --vocab 8192 --out tok.json --ext .go src/")
}

func (c tokenizerTrainCmd) Run(s *session) error {
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		tok, report, err := lab.TrainTokenizer(ctx, c.text(s, "counting"), tokenizer.TrainOptions{
			VocabSize: c.Vocab, Pattern: c.Pattern, Special: c.Special, Threads: c.Threads,
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

// reportText tells what was read; what was left out is worth a line on the screen always.
func (s *session) reportText(r corpus.Report) { s.notef("%s", r) }

// tokenizerArg names a tokenizer to use.
type tokenizerArg struct {
	Tokenizer string `arg:"" help:"A tokenizer.json, or a .tiktoken rank file."`
	Pattern   string `default:"cl100k" help:"How text is cut before merging; only for rank files, which do not say."`
}

func (a tokenizerArg) load() (*tokenizer.Tokenizer, error) {
	if filepath.Ext(a.Tokenizer) != ".tiktoken" {
		tok, err := tokenizer.Load(a.Tokenizer)
		return tok, asData(err)
	}
	f, err := os.Open(a.Tokenizer)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tok, err := tokenizer.ReadTiktoken(f, a.Pattern, nil)
	if err != nil {
		return nil, asData(fmt.Errorf("%s: %w", a.Tokenizer, err))
	}
	return tok, nil
}

type tokenizerEncodeCmd struct {
	tokenizerArg
	File    string `arg:"" optional:"" help:"Text; none reads standard input."`
	Special bool   `help:"Take the names of special tokens in the text for the tokens themselves."`
}

func (tokenizerEncodeCmd) Help() string { return example("anneal tokenizer encode tok.json main.go") }

func (c tokenizerEncodeCmd) Run(s *session) error {
	tok, err := c.load()
	if err != nil {
		return err
	}
	text, err := s.input(c.File)
	if err != nil {
		return err
	}
	var ids []uint32
	if c.Special {
		ids = tok.EncodeSpecial(text)
	} else {
		ids = tok.NewEncoder().Encode(nil, text)
	}
	var line []byte
	for _, id := range ids {
		line = append(strconv.AppendUint(line, uint64(id), 10), ' ')
	}
	s.printf("%s\n", bytes.TrimSpace(line))
	return s.emit(map[string]any{"ids": ids, "tokens": len(ids), "bytes": len(text)})
}

type tokenizerDecodeCmd struct {
	tokenizerArg
	File string `arg:"" optional:"" help:"Token ids, separated by spaces; none reads standard input."`
}

func (tokenizerDecodeCmd) Help() string {
	return example("anneal tokenizer decode tok.json ids.txt", "anneal tokenizer encode tok.json main.go | anneal tokenizer decode tok.json")
}

func (c tokenizerDecodeCmd) Run(s *session) error {
	tok, err := c.load()
	if err != nil {
		return err
	}
	text, err := s.input(c.File)
	if err != nil {
		return err
	}
	ids, err := parseIDs(text, tok.VocabSize())
	if err != nil {
		return err
	}
	decoded := tok.Decode(nil, ids)
	if !s.json {
		_, err = s.stdout.Write(decoded)
		return err
	}
	return s.emit(map[string]any{"text": string(decoded), "tokens": len(ids)})
}

// parseIDs reads token ids separated by white space.
func parseIDs(text []byte, vocab int) ([]uint32, error) {
	var ids []uint32
	for i, word := range bytes.Fields(text) {
		n, err := strconv.ParseUint(string(word), 10, 32)
		if err != nil || n >= uint64(vocab) {
			return nil, &usageError{
				fmt.Sprintf("id %d of the input, %.40q, is not a token of this vocabulary of %d", i+1, word, vocab),
				"try the output of `anneal tokenizer encode`",
			}
		}
		ids = append(ids, uint32(n))
	}
	return ids, nil
}

// input reads a file, or standard input if path is "".
func (s *session) input(path string) ([]byte, error) {
	if path == "" {
		return io.ReadAll(s.stdin)
	}
	return os.ReadFile(path)
}

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
