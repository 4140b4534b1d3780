package tasks

import "strings"

// A Problem says why a task file cannot be used, alone or with its data.
type Problem struct {
	At      string // file:line
	Message string
	Try     string // what to do; may be empty
}

func (p *Problem) Error() string {
	s := p.Message
	if p.At != "" {
		s += "\n  at " + p.At
	}
	if p.Try != "" {
		s += "\n  try " + p.Try
	}
	return s
}

// clip shortens a value for an error message: the beginning of its first line.
func clip(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}
