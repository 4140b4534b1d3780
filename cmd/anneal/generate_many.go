package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"anneal/internal/fileio"
	"anneal/internal/units"
	"anneal/lab"
	"anneal/model"
	"anneal/use"
)

// written is a line of generate --prompts.
type written struct {
	Prompt string `json:"prompt"`
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
	Ended  bool   `json:"ended"`

	Stopped string `json:"stopped,omitempty"`
}

// checkMany returns an error if the flags for many prompts and those for one are given together.
func (c generateCmd) checkMany() error {
	switch {
	case c.Prompts == "" && c.Out != "":
		return &usageError{"--out is for many prompts", "add --prompts FILE, or leave out --out: the text is printed"}
	case c.Prompts != "" && c.Out == "":
		return &usageError{"--prompts needs a file for the texts",
			"try --out texts.jsonl, or --out - for standard output"}
	case c.Prompts != "" && (c.Prompt != nil || c.PromptFile != ""):
		return &usageError{"--prompts has all prompts", "leave out --prompt and --prompt-file"}
	}
	return nil
}

// fromFile continues the prompts of a file.
func (c generateCmd) fromFile(s *session, sampling model.Sampling) error {
	questions, err := s.questions(c.Prompts)
	if err != nil {
		return err
	}
	r, err := c.open(s, c.Dir, c.Device, c.Threads, c.reachFlags)
	if err != nil {
		return err
	}
	defer r.Close()
	around(s, r, c.NoStart)
	return c.many(s, r, questions, use.GenerateOptions{
		Bare: c.NoStart, MaxTokens: int(c.MaxTokens), Stop: c.Stop, OneByOne: c.OneByOne, Sampling: sampling,
	})
}

// questions reads the prompts of a file or of standard input.
func (s *session) questions(path string) ([]lab.Question, error) {
	text, err := s.input(path)
	if err != nil {
		return nil, asData(err)
	}
	if path == "-" {
		path = "standard input"
	}
	return lab.ReadQuestions(path, text)
}

// many continues each prompt and writes the continuations.
func (c generateCmd) many(s *session, r *use.Trained, questions []lab.Question, o use.GenerateOptions) error {
	start := time.Now()
	return s.untilSignal(func(ctx context.Context) error {
		prompts := make([]string, len(questions))
		for i, q := range questions {
			prompts[i] = q.Prompt
		}
		list, err := r.GenerateMany(ctx, prompts, o, func(done int) {
			s.status.update(func(int) string { return fmt.Sprintf("%d of %d prompts", done, len(prompts)) })
		})
		lines, tokens, ended := finishedTexts(prompts, list)
		if err != nil && len(lines) == 0 {
			return err
		}
		if failed := writeTexts(string(c.Out), lines); failed != nil {
			return failed
		}
		if err != nil {
			s.notef("%d of %d texts were finished, and are written", len(lines), len(prompts))
			return err
		}
		elapsed := time.Since(start)
		what := fmt.Sprintf("%s of %s, %d of them ended by the model", units.Count(len(lines), "text"),
			units.Count(tokens, "token"), ended)
		s.closing(what, c.Out.String(), elapsed, "")
		return s.emit(map[string]any{
			"out": string(c.Out), "prompts": len(lines), "tokens": tokens, "ended": ended, "step": r.Step,
			"damaged": faults(r.Skipped), "seconds": elapsed.Seconds(),
		})
	})
}

// finishedTexts returns a line for each prompt whose continuation is complete, and the number of their tokens and of
// those that the model ended.
func finishedTexts(prompts []string, list []use.Continuation) (lines []written, tokens, ended int) {
	for i, x := range list {
		if !x.Done {
			continue
		}
		lines = append(lines, written{prompts[i], x.Text, x.Tokens, x.Ended, x.Stopped})
		if tokens += x.Tokens; x.Ended {
			ended++
		}
	}
	return lines, tokens, ended
}

func writeTexts(path string, lines []written) error {
	return fileio.Write(path, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		for _, line := range lines {
			if err := e.Encode(line); err != nil {
				return err
			}
		}
		return b.Flush()
	})
}
