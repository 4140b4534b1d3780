package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anneal/internal/units"
	"anneal/tokenizer"
)

type tokenizerConvertCmd struct {
	tokenizerArg
	To      string            `required:"" placeholder:"FORMAT" enum:"hf,gpt2,tiktoken" help:"hf: tokenizer.json, tokenizer_config.json and special_tokens_map.json; gpt2: vocab.json and merges.txt; tiktoken: a rank file."`
	Out     string            `required:"" placeholder:"DIR" help:"Directory for the files. Files of the same names are replaced."`
	Special map[string]uint32 `placeholder:"TEXT=ID" help:"Special tokens, for files that do not list them: .tiktoken and vocab.json."`
	endOfTextFlag
}

func (tokenizerConvertCmd) Help() string {
	return example(
		"anneal tokenizer convert cl100k_base.tiktoken --to hf --out cl100k",
		`anneal tokenizer convert own.tiktoken --pattern o200k --special "<|endoftext|>=50000" --to hf --out own`,
		"anneal tokenizer convert tok.json --to tiktoken --out ranks",
	)
}

func (c tokenizerConvertCmd) Run(s *session) error {
	start := time.Now()
	tok, err := c.loadWith(c.Special)
	if err == nil {
		err = c.name(tok)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return fmt.Errorf("cannot make the directory of --out: %w", err)
	}
	files := []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
	switch c.To {
	case "hf":
		err = tok.SaveHF(c.Out)
	case "gpt2":
		files = []string{"vocab.json", "merges.txt"}
		err = tok.SaveGPT2(c.Out)
	case "tiktoken":
		files = []string{"ranks.tiktoken"}
		err = tok.SaveTiktoken(filepath.Join(c.Out, files[0]))
	}
	if err != nil {
		return asData(err)
	}
	held := tok.VocabSize()
	if c.To == "tiktoken" {
		held -= len(tok.Specials())
	}
	what := strings.Join(files, ", ") + " of " + units.Commas(held) + " tokens"
	for i, name := range files {
		files[i] = filepath.Join(c.Out, name)
	}
	next := "anneal data build " + command("--tokenizer", files[0]) + " --out data/NAME PATHS"
	switch _, err := tok.EndOfText(); {
	case c.To != "hf":
		s.notef("not in these files: %s", notIn(tok, c.To))
		next = "anneal tokenizer eval " + command(files[0], "--pattern", tok.Pattern()) + " PATHS"
		if strings.Contains(tok.Pattern(), "\n") { // a list of patterns, which --pattern cannot name
			next = ""
		}
	case err != nil:
		s.warn("the files do not name the token that ends a text: " + err.Error())
	}
	elapsed := time.Since(start)
	s.closing(what, c.Out, elapsed, next)
	return s.emit(map[string]any{
		"out": c.Out, "seconds": elapsed.Seconds(), "files": files, "vocab_size": tok.VocabSize(),
		"pattern": tok.Pattern(), "hash": tok.Hash(),
	})
}

// notIn lists the properties of a tokenizer that a format cannot express.
func notIn(tok *tokenizer.Tokenizer, format string) string {
	text := "the pattern, " + tok.Pattern()
	if format == "tiktoken" {
		for _, t := range tok.Specials() {
			text += fmt.Sprintf("; the special token %s, %d", t.Text, t.ID)
		}
	}
	if n := tok.Normalizer(); n != "" {
		text += "; the normalizer, " + n
	}
	return text
}
