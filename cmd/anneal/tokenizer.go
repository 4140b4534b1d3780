package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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
	Paths     []string `arg:"" name:"files-or-dirs" help:"Text, source trees, .jsonl, .parquet, .warc, .wet; also .gz and .zst."`
	Ext       []string `placeholder:".go" help:"From directories take only files with these endings."`
	TextField string   `default:"text" aliases:"column" help:"Where the text is: the key in a line of .jsonl, the column of .parquet (a.b is b in a)."`
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

// reportText tells what was read; what was left out is worth a line on the screen always.
func (s *session) reportText(r corpus.Report) { s.notef("%s", r) }

// tokenizerArg names a tokenizer to use.
type tokenizerArg struct {
	Tokenizer string `arg:"" help:"A tokenizer.json, or a .tiktoken rank file."`
	Pattern   string `placeholder:"cl100k" help:"How text is cut before merging; only for rank files, which do not say."`
}

func (a tokenizerArg) load() (*tokenizer.Tokenizer, error) {
	if filepath.Ext(a.Tokenizer) != ".tiktoken" {
		if a.Pattern != "" {
			return nil, &usageError{a.Tokenizer + " has a pattern of its own", "try it without --pattern, which is for .tiktoken files"}
		}
		return loadTokenizer(a.Tokenizer)
	}
	f, err := os.Open(a.Tokenizer)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tok, err := tokenizer.ReadTiktoken(f, cmp.Or(a.Pattern, "cl100k"), nil)
	if err != nil {
		return nil, asData(fmt.Errorf("%s: %w", a.Tokenizer, err))
	}
	return tok, nil
}

// loadTokenizer reads a tokenizer.json.
func loadTokenizer(path string) (*tokenizer.Tokenizer, error) {
	tok, err := tokenizer.Load(path)
	if err != nil && !strings.Contains(err.Error(), "\n") {
		err = fmt.Errorf("%w\n  try a tokenizer.json made by `anneal tokenizer train`", err)
	}
	return tok, asData(err)
}

// input reads a file, or standard input if path is "".
func (s *session) input(path string) ([]byte, error) {
	if path == "" {
		return io.ReadAll(s.stdin)
	}
	return os.ReadFile(path)
}
