package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A shell receives the completions of the word that is being typed.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		words string
		want  []string // at least
		not   []string
	}{
		{"@tr", []string{"train"}, []string{"resume", filesToo}},
		{"data @b", []string{"build"}, []string{"curate"}},
		{"train @--dry", []string{"--dry-run"}, []string{"--json"}},
		{"train @--js", []string{"--json"}, nil},
		{"train c.yaml @optimizer.na", []string{"optimizer.name="}, []string{"optimizer.lr=", filesToo}},
		{"train c.yaml @optimizer.name=ad", []string{"optimizer.name=adamw"}, []string{"optimizer.name=muon"}},
		{"train c.yaml @model.qk_norm=", []string{"model.qk_norm=true", "model.qk_norm=false"}, nil},
		{"train @", []string{filesToo, "seed="}, nil},
		{"train --out @r", []string{filesToo}, []string{"seed="}},
		{"eval runs/a --weights @", []string{"last", "ema"}, []string{filesToo}},
		{"eval runs/a @--weights=", []string{"--weights=last", "--weights=ema"}, []string{filesToo}},
		{"export runs/a x @--to=g", []string{"--to=gguf"}, []string{"--to=hf"}},
		{"train @--out=r", []string{filesToo}, nil},
		{"train --recipe @qw", []string{"qwen3-8b"}, []string{"llama2-7b", filesToo}},
		{"recipe show @ll", []string{"llama2-7b"}, []string{filesToo}},
		{"explain @ze", []string{"zero"}, []string{filesToo}},
		{"explain @optimizer.mo", []string{"optimizer.moments"}, []string{"optimizer.lr"}},
		{"completion @", []string{"bash", "zsh", "fish", "powershell", "man"}, nil},
		{"resume --nonsense @", []string{filesToo}, nil},
		{"nonsense @", nil, nil},
	} {
		code, out, errs := anneal(append([]string{completeWord}, strings.Fields(c.words)...)...)
		if code != exitOK || errs != "" {
			t.Fatalf("%s: exit %d, %s", c.words, code, errs)
		}
		var got []string
		for line := range strings.Lines(out) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, word)
		}
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %q lacks %q", c.words, got, w)
			}
		}
		for _, w := range c.not {
			if slices.Contains(got, w) {
				t.Errorf("%s: %q has %q", c.words, got, w)
			}
		}
	}
}

// Bash takes the script, and asks anneal for the right words.
func TestBashTakesTheScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	code, script, _ := anneal("completion", "bash")
	if code != exitOK {
		t.Fatalf("exit %d", code)
	}
	const ask = `
compopt() { :; }
anneal() { printf '%s ' "$@" >&2; printf 'optimizer.name=muon\t\n'; }
COMP_LINE='anneal train c.yaml optimizer.name=mu'; COMP_POINT=${#COMP_LINE}; _anneal; echo "${COMPREPLY[0]}"`
	cmd := exec.Command(bash, "--norc", "-c", script+ask)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != "muon" {
		t.Errorf("%v: %q, %s", err, out, errs.String())
	}
}

// The script for PowerShell asks anneal for words in the form that complete reads, and knows the line of file names.
func TestPowerShellAsksForWords(t *testing.T) {
	code, script, _ := anneal("completion", "powershell")
	for _, want := range []string{
		"Register-ArgumentCompleter -Native -CommandName anneal", completeWord + ` @before "@$current"`,
		"-eq '" + filesToo + "'", "CompleteFilename($current)", "-split \"`t\"",
	} {
		if code != exitOK || !strings.Contains(script, want) {
			t.Errorf("exit %d, the script lacks %q", code, want)
		}
	}
}

func TestManPageNamesEveryCommand(t *testing.T) {
	code, page, _ := anneal("completion", "man")
	for _, want := range []string{".TH ANNEAL 1", ".SS anneal train", ".SS anneal data build", `.B \-\-dry\-run`} {
		if code != exitOK || !strings.Contains(page, want) {
			t.Errorf("exit %d, the page lacks %q", code, want)
		}
	}
}
