package config

import "strings"

// Problem is one mistake in a config. It is also an error by itself, for functions that report only one.
type Problem struct {
	Key     string // dotted; "" if the file as a whole is wrong
	Message string
	At      string // file:line:col, or the override; "" if there is no place
	Try     string // what to do
}

func (p Problem) Error() string {
	s := p.Message
	if p.At != "" {
		s += "\n  at " + p.At
	}
	if p.Try != "" {
		s += "\n  try " + p.Try
	}
	return s
}

// Error holds all mistakes in a config, in the order of the file.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets a caller print the problems one by one.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &Error{problems}
}
