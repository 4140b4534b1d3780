package main

import (
	"anneal/internal/units"
	"bytes"
	"fmt"
	"strconv"
	"time"
)

type tokenizerDecodeCmd struct {
	tokenizerArg
	File string `arg:"" optional:"" help:"A file of token ids with spaces between them. Default: standard input."`
}

func (tokenizerDecodeCmd) Help() string {
	return example("anneal tokenizer decode tok.json ids.txt",
		"anneal tokenizer encode tok.json main.go | anneal tokenizer decode tok.json")
}

func (c tokenizerDecodeCmd) Run(s *session) error {
	start := time.Now()
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
		if _, err = s.stdout.Write(decoded); err != nil {
			return err
		}
	}
	elapsed := time.Since(start)
	s.piped = true // standard output has only the text
	s.closing(fmt.Sprintf("%s bytes from %s tokens", units.Commas(len(decoded)), units.Commas(len(ids))), "",
		elapsed, "anneal tokenizer encode "+command(c.Tokenizer)+" FILE")
	return s.emit(map[string]any{"text": string(decoded), "tokens": len(ids), "seconds": elapsed.Seconds()})
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
