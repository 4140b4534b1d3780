package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestClosingSaysWhatWhereHowLongAndNext(t *testing.T) {
	var out, errs strings.Builder
	s := &session{stdout: &results{w: &out}, stderr: &errs, status: newStatus(&errs)}
	s.closing("a tokenizer of 8,192 tokens", "tok.json",
		2340*time.Millisecond, command("anneal", "data", "build", "--out", "my data"))
	want := "wrote tok.json: a tokenizer of 8,192 tokens, in 2.3 s\nnext: anneal data build --out 'my data'\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	out.Reset()
	s.json = true
	if s.closing("a tokenizer", "tok.json", time.Second, ""); out.String() != "" ||
		errs.String() != "wrote tok.json: a tokenizer, in 1.0 s\n" {
		t.Errorf("with --json standard output has %q and standard error %q", out.String(), errs.String())
	}
}

func TestSecondsHaveAUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.00 s", 420 * time.Millisecond: "0.42 s", 59940 * time.Millisecond: "59.9 s",
		59960 * time.Millisecond: "1m00s", 123 * time.Second: "2m03s",
	} {
		if got := seconds(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

// The oracle is a shell.
func TestCommandIsReadBackByAShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	words := []string{"plain", "", "a b", "it's", `"$HOME"`, "~", "*", "data.path=data/go", "first 15%", "a;b", "naïve"}
	got, err := exec.Command(sh, "-c", `printf '%s\n' `+command(words...)).Output()
	if want := strings.Join(words, "\n") + "\n"; err != nil || string(got) != want {
		t.Errorf("a shell reads %q, %v, want %q", got, err, want)
	}
}

// The proposed command also works for files whose names begin with a dash.
func TestNextCommandTakesNamesWithADash(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "-x.txt", strings.Repeat("some words to learn from\n", 40))
	write(t, "-p.yaml", "stages: [normalize]\n")
	for _, args := range [][]string{
		{"tokenizer", "train", "--vocab", "260", "--out=-t.json", "--", "-x.txt"},
		{"data", "curate", "--dry-run", "--", "-p.yaml", "-x.txt"},
	} {
		code, out, errs := anneal(args...)
		_, next, found := strings.Cut(out, "next: anneal ")
		if code != exitOK || !found {
			t.Fatalf("%v: exit %d\n%s%s", args, code, out, errs)
		}
		if code, out, errs := anneal(strings.Fields(next)...); code != exitOK {
			t.Errorf("%s: exit %d\n%s%s", next, code, out, errs)
		}
	}
}
