package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"anneal/use"
)

// echo is a model that continues a text with its prompt.
type echo struct {
	written string
	asked   []use.GenerateOptions
	ends    bool   // whether each answer ends the text
	during  func() // called during an answer
}

func (e *echo) Empty() bool { return e.written == "" }
func (e *echo) Reset()      { e.written = "" }

func (e *echo) Continue(ctx context.Context, o use.GenerateOptions, emit func(string)) (use.Generated, error) {
	e.asked = append(e.asked, o)
	e.written += o.Prompt + "."
	emit("." + strings.Repeat("!", len(e.asked)))
	if e.during != nil {
		e.during()
		<-ctx.Done()
	}
	return use.Generated{Ended: e.ends}, ctx.Err()
}

// conversation simulates a person who types these lines to e.
func conversation(t *testing.T, e *echo, interrupt chan os.Signal, lines ...string) (said, noted string) {
	t.Helper()
	var text, notes strings.Builder
	c := talk{
		writer: e, interrupt: interrupt, say: func(s string) { text.WriteString(s) }, ask: func() {},
		note: func(format string, args ...any) { fmt.Fprintf(&notes, format+"\n", args...) },
	}
	c.options.Temperature, c.options.MaxTokens, c.options.TopP, c.options.Repetition = 0.8, 200, 0.95, 1
	if err := c.run(strings.NewReader(strings.Join(lines, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	return text.String(), notes.String()
}

// Each typed line is added to the text as a new line until a reset; commands are not text.
func TestTalkAddsLinesToTheText(t *testing.T) {
	e := &echo{}
	said, noted := conversation(t, e, nil, "func main", "", "// main", "/reset", "/usr/bin",
		"/temperature 0.25", "/max-tokens 7", "a", "/quit", "not read")
	var prompts []string
	for _, o := range e.asked {
		prompts = append(prompts, o.Prompt)
	}
	if got, want := strings.Join(prompts, "|"), "func main||\n// main|/usr/bin|\na"; got != want {
		t.Errorf("the model was asked %q, want %q", got, want)
	}
	if last := e.asked[4]; last.Temperature != 0.25 || last.MaxTokens != 7 || last.Seed == e.asked[0].Seed {
		t.Errorf("the last answer was made with %+v", last)
	}
	if !strings.HasPrefix(said, "func main.!\n.!!\n// main.!!!\n") {
		t.Errorf("the terminal shows %q", said)
	}
	if !strings.Contains(noted, "a new text begins") {
		t.Errorf("notes: %s", noted)
	}
}

// To a user, a top-p of 0 is the most likely token alone.
func TestTalkTakesATopPOfZero(t *testing.T) {
	e := &echo{}
	_, noted := conversation(t, e, nil, "/top-p 0", "x")
	if len(e.asked) != 1 || !(e.asked[0].TopP > 0 && e.asked[0].TopP < 1e-9) || !strings.Contains(noted, "top-p 0,") {
		t.Errorf("asked with %+v; %s", e.asked, noted)
	}
}

// Invalid commands change nothing and are answered with a message.
func TestTalkRefusesCommandsThatMakeNoSense(t *testing.T) {
	for line, want := range map[string]string{
		"/temperature":     "/temperature takes a number, such as 0.7",
		"/temperature hot": "/temperature takes a number, such as 0.7",
		"/temperature -1":  "is not a finite number of at least 0",
		"/top-p 2":         "is not a probability",
		"/top-k -3":        "/top-k -3 is negative",
		"/max-tokens 0":    "/max-tokens takes a number, such as 200",
		"/nonsense":        "there is no command /nonsense",
		"/help":            "/temperature T",
	} {
		e := &echo{}
		if _, noted := conversation(t, e, nil, line, "x"); !strings.Contains(noted, want) {
			t.Errorf("%s: %q does not say %q", line, noted, want)
		}
		if len(e.asked) != 1 || e.asked[0].Temperature != 0.8 || e.asked[0].MaxTokens != 200 || e.asked[0].TopK != 0 {
			t.Errorf("%s: the next answer was made with %+v", line, e.asked)
		}
	}
}

// An interrupt stops the answer, not the talk; if the model ends the text, a new text begins.
func TestTalkGoesOnAfterAnAnswerThatStops(t *testing.T) {
	interrupt := make(chan os.Signal, 1)
	e := &echo{during: func() { interrupt <- os.Interrupt }}
	if _, noted := conversation(t, e, interrupt, "a", "b"); len(e.asked) != 2 || strings.Count(noted, "stopped") != 2 {
		t.Errorf("%d answers, notes %q", len(e.asked), noted)
	}
	e = &echo{ends: true}
	if conversation(t, e, nil, "a", "b"); len(e.asked) != 2 || e.asked[1].Prompt != "b" {
		t.Errorf("after the end of a text the model was asked %+v", e.asked)
	}
}

// The prompt is a flag, a file or standard input; the line break that ends a file does not count.
func TestPromptsFromFilesAndStandardInput(t *testing.T) {
	w := newWorkshop(t)
	w.object(exitOK, "train", w.path("run.yaml"), "--out", w.path("run"))
	if err := os.WriteFile(w.path("prompt"), []byte("func a\nfunc b\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags       []string
		stdin, want string
	}{
		{[]string{"--prompt", "func"}, "not read", "func"},
		{[]string{"--prompt", ""}, "not read", ""},
		{[]string{"--prompt", "-"}, "func x\n", "func x"},
		{nil, "func x\n\n", "func x\n"},
		{nil, "", ""},
		{[]string{"--prompt-file", w.path("prompt")}, "not read", "func a\nfunc b"},
		{[]string{"--prompt-file", "-"}, "func y", "func y"},
	} {
		var out, errs strings.Builder
		args := append([]string{"generate", w.path("run"), "--max-tokens", "2"}, c.flags...)
		code := execute(args, strings.NewReader(c.stdin), &out, &errs)
		if code != exitOK || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%q with %q on standard input: exit %d, %q, %s",
				c.flags, c.stdin, code, out.String(), errs.String())
		}
		if n := strings.Count(errs.String(), "the text starts with <|endoftext|>"); n != 1 {
			t.Errorf("%q: what the text starts with is said %d times: %s", c.flags, n, errs.String())
		}
	}
	v := w.object(exitOK, "generate", w.path("run"), "--prompt", "func", "--no-start", "--max-tokens", "2")
	if start, ok := v["start"].([]any); !ok || len(start) != 0 {
		t.Errorf("--no-start starts with %v", v["start"])
	}
	w.object(exitUsage, "generate", w.path("run"), "--no-start")
	w.object(exitUsage, "generate", w.path("run"), "--prompt", "a", "--prompt-file", w.path("prompt"))
	w.object(exitUsage, "generate", w.path("run"), "--prompt", "a", "--prompt", "b")
	w.object(exitData, "generate", w.path("run"), "--prompt-file", w.path("missing"))
}
