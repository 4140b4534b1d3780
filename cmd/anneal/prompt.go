package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// promptFlags give the text to continue.
type promptFlags struct {
	Prompt     []string `xor:"prompt" sep:"none" placeholder:"TEXT" help:"What the text begins with; - reads standard input."`
	PromptFile string   `xor:"prompt" placeholder:"FILE" help:"File with the prompt; its last line break is left out."`
}

// read returns the prompt. Without a prompt, ask is true if standard input is a terminal; otherwise standard input is
// the prompt.
func (f promptFlags) read(s *session) (prompt string, ask bool, err error) {
	path := f.PromptFile
	switch {
	case len(f.Prompt) > 1:
		return "", false, &usageError{
			fmt.Sprintf("--prompt is given %d times, and one text is continued", len(f.Prompt)),
			"try --prompts FILE, with a prompt a line",
		}
	case len(f.Prompt) == 1 && f.Prompt[0] != "-":
		return f.Prompt[0], false, nil
	case f.Prompt == nil && path == "" && s.atTerminal():
		return "", true, nil
	}
	text, err := s.input(path)
	return withoutLastBreak(string(text)), false, asData(err)
}

// withoutLastBreak cuts off the line break at the end of a file, so that the model does not continue on a new line.
func withoutLastBreak(text string) string {
	text, cut := strings.CutSuffix(text, "\n")
	if cut {
		text = strings.TrimSuffix(text, "\r")
	}
	return text
}

// atTerminal reports whether standard input is a terminal.
func (s *session) atTerminal() bool {
	f, ok := s.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
