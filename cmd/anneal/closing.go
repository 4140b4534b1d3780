package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"anneal/internal/shellword"
)

// closing ends what a command prints for people: what it wrote, where, in which time, and the command to type next,
// such as
//
//	wrote tok.json: a tokenizer of 8,192 tokens, in 2.3 s
//	next: anneal data build --tokenizer tok.json --out data/my-text PATHS
//
// where is "" if nothing was written, next is "" if nothing follows. --json has the same as "out" and "seconds".
func (s *session) closing(what, where string, elapsed time.Duration, next string) {
	if where == "" {
		s.printf("%s, in %s\n", what, seconds(elapsed))
	} else {
		s.printf("wrote %s: %s, in %s\n", where, what, seconds(elapsed))
	}
	if next != "" {
		s.printf("next: %s\n", next)
	}
}

// nameOf names something made from a file or directory: its base name without extensions.
func nameOf(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return "text"
	}
	name, _, _ := strings.Cut(strings.TrimLeft(filepath.Base(path), "."), ".")
	if name == "" || name == string(filepath.Separator) {
		return "text"
	}
	return name
}

// command writes words as a line that a shell reads as these words.
func command(words ...string) string { return shellword.Command(words...) }

// operand returns a path as the argument of a command. A path that begins with a dash would be taken for a flag.
func operand(path string) string {
	if strings.HasPrefix(path, "-") {
		return "./" + path
	}
	return path
}

// seconds writes how long something took: 0.42 s, 12.3 s, 2m03s.
func seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 1:
		return fmt.Sprintf("%.2f s", s)
	case s < 59.95:
		return fmt.Sprintf("%.1f s", s)
	}
	return clock(d)
}
