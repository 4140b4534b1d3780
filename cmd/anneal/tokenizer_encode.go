package main

import (
	"anneal/internal/units"
	"bytes"
	"fmt"
	"strconv"
	"time"
)

type tokenizerEncodeCmd struct {
	tokenizerArg
	File    string `arg:"" optional:"" help:"A text file. Default: standard input."`
	Special bool   `help:"Encode the names of special tokens as the tokens themselves."`
}

func (tokenizerEncodeCmd) Help() string { return example("anneal tokenizer encode tok.json main.go") }

func (c tokenizerEncodeCmd) Run(s *session) error {
	start := time.Now()
	tok, err := c.load()
	if err != nil {
		return err
	}
	text, err := s.input(c.File)
	if err != nil {
		return err
	}
	ids := []uint32{} // an empty text has no ids, in JSON [] and not null
	if c.Special {
		ids = append(ids, tok.EncodeSpecial(text)...)
	} else {
		ids = tok.NewEncoder().Encode(ids, text)
	}
	var line []byte
	for _, id := range ids {
		line = append(strconv.AppendUint(line, uint64(id), 10), ' ')
	}
	s.printf("%s\n", bytes.TrimSpace(line))
	elapsed := time.Since(start)
	s.piped = true // the ids are for another program
	s.closing(fmt.Sprintf("%s tokens from %s bytes", units.Commas(len(ids)), units.Commas(len(text))), "",
		elapsed, "anneal tokenizer decode "+command(c.Tokenizer)+" IDS")
	return s.emit(map[string]any{"ids": ids, "tokens": len(ids), "bytes": len(text), "seconds": elapsed.Seconds()})
}
