package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	goccy "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// MaxBytes is the longest text that is parsed.
const MaxBytes = 64 << 10

// Error is the reason why a text cannot be parsed.
type Error struct {
	Line, Column int // from 1; 0 if the fault has no position
	Message, Try string
}

func (e *Error) Error() string {
	s := e.Message
	if e.Line > 0 {
		s = fmt.Sprintf("line %d: %s", e.Line, s)
	}
	if e.Try != "" {
		s += "\n  try " + e.Try
	}
	return s
}

func fault(at *token.Position, try, format string, args ...any) *Error {
	e := &Error{Message: fmt.Sprintf(format, args...), Try: try}
	if at != nil {
		e.Line, e.Column = at.Line, at.Column
	}
	return e
}

// Parse parses a text. An error is an *Error. It takes at most 100 ms and 64 MiB of allocations, whatever the text is.
func Parse(text []byte, options ...parser.Option) (file *ast.File, err error) {
	defer func() { // the parser panics on some texts
		if p := recover(); p != nil {
			file, err = nil, fault(nil, "", "not YAML: %v", p)
		}
	}()
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin a file with this mark
	if len(text) > MaxBytes {
		return nil, fault(nil, "a shorter file: comments count, too", "larger than %d KiB", MaxBytes>>10)
	}
	if e := checkRuns(text); e != nil {
		return nil, e
	}
	tokens, e := scan(string(text))
	if e != nil {
		return nil, explain(e, text)
	}
	if e = checkTokens(tokens); e != nil {
		return nil, e
	}
	if file, err = parser.Parse(tokens, 0, options...); err != nil {
		return nil, explain(syntaxError(err), text)
	}
	return file, nil
}

// scan splits a text into tokens, up to the first invalid one.
func scan(text string) (tokens token.Tokens, e *Error) {
	var s scanner.Scanner
	s.Init(text)
	for {
		some, err := s.Scan()
		if err == io.EOF {
			return tokens, nil
		}
		tokens.Add(some...)
		if bad := tokens.InvalidToken(); bad != nil {
			return nil, fault(bad.Position, "", "not YAML: %s", bad.Error)
		}
		if err != nil {
			return nil, fault(nil, "", "not YAML: %v", err)
		}
	}
}

// syntaxError converts the parser's error without the lines of the text that it would print, which can be the whole
// text.
func syntaxError(err error) *Error {
	var e goccy.Error
	if !errors.As(err, &e) {
		return fault(nil, "", "not YAML: %v", err)
	}
	var at *token.Position
	if t := e.GetToken(); t != nil {
		at = t.Position
	}
	return fault(at, "", "not YAML: %s", e.GetMessage())
}
