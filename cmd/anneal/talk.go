package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"anneal/use"
)

// writer continues a text that grows from turn to turn, as a *train.Text does.
type writer interface {
	Continue(ctx context.Context, o use.GenerateOptions, emit func(text string)) (use.Generated, error)
	Empty() bool
	Reset()
}

// talk lets a person and a model write a text in turns.
type talk struct {
	writer
	options   use.GenerateOptions // of the next answer
	say       func(text string)   // the text
	note      func(format string, args ...any)
	ask       func()           // prompts for the next line
	interrupt <-chan os.Signal // stops an answer
}

const talkHelp = `Type a text, and the model continues it. The next line is added to the text;
an empty line lets the model go on.
  /temperature T   0 takes the likeliest token; 1 samples as the model predicts
  /top-p P         sample among the likeliest tokens of this joint probability
  /top-k K         sample among this many likeliest tokens; 0 sets no limit
  /max-tokens N    most tokens of an answer
  /reset           begin a new text
  /help            this list
  /quit            end; so does Ctrl-D. Ctrl-C stops an answer`

// talk reads lines from standard input until its end, and lets the model answer each.
func (c generateCmd) talk(s *session, r *use.Trained, o use.GenerateOptions) error {
	text, err := r.NewText()
	if err != nil {
		return err
	}
	defer text.Close()
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	defer signal.Stop(interrupt)
	s.notef("type a text to continue; /help: commands, Ctrl-C: stop, Ctrl-D: quit")
	t := talk{
		writer: text, options: o, interrupt: interrupt, note: s.notef,
		say: func(text string) { s.printf("%s", text) },
		ask: func() { io.WriteString(s.stderr, "> ") },
	}
	return t.run(s.stdin)
}

// run answers the lines of in until they end or one of them is a command to stop.
func (t *talk) run(in io.Reader) error {
	lines, failed := readLines(in)
	for {
		t.ask()
		select {
		case <-t.interrupt:
			t.note("\nCtrl-D or /quit ends")
		case line, more := <-lines:
			if !more {
				t.say("\n")
				return <-failed
			}
			if quit, err := t.turn(line); quit || err != nil {
				return err
			}
		}
	}
}

// readLines returns a channel of lines as they are typed, and one with the error that ends them, nil at the end of in.
func readLines(in io.Reader) (<-chan string, <-chan error) {
	lines, failed := make(chan string), make(chan error, 1)
	go func() {
		scan := bufio.NewScanner(in)
		for scan.Scan() {
			lines <- scan.Text()
		}
		err := scan.Err()
		if err != nil {
			err = asData(fmt.Errorf("cannot read standard input: %w", err))
		}
		failed <- err
		close(lines)
	}()
	return lines, failed
}

// turn obeys a command, or appends a line to the text and lets the model continue it.
func (t *talk) turn(line string) (quit bool, err error) {
	name, value, isCommand := slashCommand(line)
	if !isCommand {
		return false, t.answer(line)
	}
	switch name {
	case "quit", "exit":
		return true, nil
	case "help":
		t.note("%s", talkHelp)
	case "reset":
		t.Reset()
		t.note("a new text begins")
	default:
		t.set(name, value)
	}
	return false, nil
}

// slashCommand splits a line that is a command: a slash and a word. "// Copyright" and "/usr/bin" are text.
func slashCommand(line string) (name, value string, ok bool) {
	rest, ok := strings.CutPrefix(line, "/")
	name, value, _ = strings.Cut(rest, " ")
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r == '-')
	}
	return name, strings.TrimSpace(value), ok && name != ""
}

// set changes the generation options, unless the value is invalid.
func (t *talk) set(name, value string) {
	o, err := t.options, error(nil)
	switch name {
	case "temperature":
		o.Temperature, err = strconv.ParseFloat(value, 64)
	case "top-p":
		o.TopP, err = strconv.ParseFloat(value, 64)
	case "top-k":
		o.TopK, err = strconv.Atoi(value)
	case "max-tokens":
		o.MaxTokens, err = strconv.Atoi(value)
		if err == nil && o.MaxTokens < 1 {
			err = errors.New("it must be at least 1")
		}
	default:
		t.note("there is no command /%s; /help lists the commands\n  to send it as text, begin with a space", name)
		return
	}
	if err != nil {
		t.note("/%s takes a number, such as %s, not %q", name, map[string]string{
			"temperature": "0.7", "top-p": "0.95", "top-k": "40", "max-tokens": "200",
		}[name], value)
		return
	}
	if o.Sampling, err = o.Given(); err != nil {
		t.note("/%v", err)
		return
	}
	t.options = o
	topP := strconv.FormatFloat(o.TopP, 'g', -1, 64)
	if o.TopP == math.SmallestNonzeroFloat64 {
		topP = "0"
	}
	t.note("temperature %v, top-p %s, top-k %d, at most %d tokens", o.Temperature, topP, o.TopK, o.MaxTokens)
}

// answer appends line to the text, on a new line, and lets the model continue it. An interrupt stops the answer.
func (t *talk) answer(line string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-t.interrupt:
			cancel()
		case <-over:
		}
	}()
	o := t.options
	o.Prompt = line
	if !t.Empty() && line != "" {
		o.Prompt = "\n" + line
	}
	t.say(line)
	done, err := t.Continue(ctx, o, t.say)
	t.say("\n")
	t.options.Seed++ // the same line is answered differently the next time
	switch {
	case errors.Is(err, context.Canceled):
		t.note("stopped; an empty line lets the model continue")
	case errors.Is(err, use.ErrNoText):
		t.note("%v", err)
	case err != nil:
		return err
	case done.Ended:
		t.Reset()
		t.note("the model ended the text; the next line begins a new one")
	}
	return nil
}
