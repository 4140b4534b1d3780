package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"anneal/corpus"
	"anneal/internal/fileio"
	"anneal/prepare"
	"anneal/tokenizer"
)

type tokenizerCmd struct {
	Train   tokenizerTrainCmd   `cmd:"" help:"Learn a byte-level BPE vocabulary."`
	Encode  tokenizerEncodeCmd  `cmd:"" help:"Turn text into token ids."`
	Decode  tokenizerDecodeCmd  `cmd:"" help:"Turn token ids into text."`
	Eval    tokenizerEvalCmd    `cmd:"" help:"Measure how well a tokenizer suits a text."`
	Sweep   tokenizerSweepCmd   `cmd:"" help:"Compare vocabulary sizes on held-out text."`
	Convert tokenizerConvertCmd `cmd:"" help:"Write a tokenizer in the format of Hugging Face, GPT-2 or tiktoken."`
}

// textArgs names the text that a command reads.
type textArgs struct {
	Paths     []string `arg:"" name:"files-or-dirs" help:"Text, source trees, .jsonl, .parquet, .warc, .wet; also .gz and .zst."`
	Ext       []string `placeholder:".go" help:"Take only files with these extensions from directories."`
	TextField string   `default:"text" help:"Field with the text: a key of .jsonl lines, a column of .parquet, where a.b is field b within a."`
}

// words returns the arguments for another command on the same text, or a placeholder if there are many.
func (a textArgs) words() []string {
	var words []string
	if len(a.Ext) > 0 {
		words = append(words, "--ext", strings.Join(a.Ext, ","))
	}
	if a.TextField != "text" {
		words = append(words, "--text-field", a.TextField)
	}
	if len(a.Paths) > 2 {
		return append(words, "PATHS")
	}
	for _, path := range a.Paths {
		words = append(words, operand(path))
	}
	return words
}

// text returns the text that the arguments name, with progress on the screen.
func (a textArgs) text(s *session, what string) prepare.Text {
	show := s.readProgress()
	return prepare.Text{
		Paths: a.Paths, Options: corpus.Options{Extensions: a.Ext, TextField: a.TextField},
		Progress: func(read, total int64) { show(what, read, total) },
	}
}

// spares refuses an output that would replace a file of the text.
func (a textArgs) spares(flag string, out outFile) error {
	if _, err := os.Stat(string(out)); err != nil {
		return nil
	}
	r, err := corpus.Open(a.Paths, corpus.Options{Extensions: a.Ext})
	if err != nil {
		return asData(err)
	}
	return out.differs(flag, r.Files())
}

// readProgress returns a function that shows how much of a text is read.
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

// reportText prints what was read and what was skipped.
func (s *session) reportText(r corpus.Report) { s.notef("%s", r) }

// tokenizerArg names a tokenizer to use.
type tokenizerArg struct {
	Tokenizer string `arg:"" help:"A tokenizer.json, a .tiktoken rank file, a vocab.json beside its merges.txt, or a directory that has one of these (a rank file must be named ranks.tiktoken there)."`
	Pattern   string `placeholder:"cl100k" help:"How text is split before merging, for files that do not store it: .tiktoken and vocab.json."`
}

func (a tokenizerArg) load() (*tokenizer.Tokenizer, error) { return a.loadWith(nil) }

// loadWith is load with special tokens for a file that does not contain them.
func (a tokenizerArg) loadWith(specials map[string]uint32) (*tokenizer.Tokenizer, error) {
	tok, err := tokenizer.Open(a.Tokenizer, a.Pattern, specials)
	if errors.Is(err, tokenizer.ErrOwnPattern) {
		return nil, &usageError{err.Error(),
			"try it without --pattern and --special, which are for .tiktoken and vocab.json"}
	}
	return tok, teachTokenizer(err)
}

// loadTokenizer reads a tokenizer.json.
func loadTokenizer(path string) (*tokenizer.Tokenizer, error) {
	tok, err := tokenizer.Load(path)
	return tok, teachTokenizer(err)
}

// endOfTextFlag is on commands whose tokenizer file may not say which token ends a text.
type endOfTextFlag struct {
	EndOfText string `placeholder:"TOKEN" help:"Special token that ends a text. Default: eos_token of tokenizer_config.json beside the tokenizer, or a special token with a usual name, such as </s>."`
}

// load reads a tokenizer.json, in which a token must be known to end a text.
func (f endOfTextFlag) load(path string) (*tokenizer.Tokenizer, error) {
	tok, err := loadTokenizer(path)
	if err != nil {
		return nil, err
	}
	if err := f.name(tok); err != nil {
		return nil, err
	}
	_, err = tok.EndOfText()
	return tok, asData(err)
}

// name sets the token that ends a text in a tokenizer, if the flag is given.
func (f endOfTextFlag) name(tok *tokenizer.Tokenizer) error {
	if f.EndOfText == "" {
		return nil
	}
	if err := tok.SetEndOfText(f.EndOfText); err != nil {
		return asUsage(fmt.Errorf("--end-of-text: %w", err))
	}
	return nil
}

// teachTokenizer adds advice to the error of a file that is not a tokenizer.
func teachTokenizer(err error) error {
	if err != nil && !strings.Contains(err.Error(), "\n") {
		err = fmt.Errorf("%w\n  try a tokenizer.json made by `anneal tokenizer train`", err)
	}
	return asData(err)
}

// maxInput is the longest text that is encoded or decoded in one piece.
const maxInput = 64 << 20

// input reads a file, or standard input if path is "", - or /dev/stdin.
func (s *session) input(path string) (text []byte, err error) {
	switch path {
	case "", "-", "/dev/stdin":
		text, err = io.ReadAll(io.LimitReader(s.stdin, maxInput+1))
		if err == nil && len(text) > maxInput {
			err = &fs.PathError{Op: "read", Path: "standard input", Err: fileio.TooLargeError(maxInput)}
		}
	default:
		text, err = fileio.ReadSmall(path, maxInput)
	}
	if large := fileio.TooLargeError(0); errors.As(err, &large) {
		err = fmt.Errorf("%w\n  split it into parts; `anneal data build` reads text of any size", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w\n  try the path of a file, or - to read the text from standard input",
			err)
	}
	if errors.Is(err, fileio.ErrNotRegular) {
		err = fmt.Errorf("%w\n  give - in its place, and %[2]s as standard input: - < %[2]s", err, path)
	}
	return text, err
}
