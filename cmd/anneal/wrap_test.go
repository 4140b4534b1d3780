package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"anneal/config"

	"github.com/alecthomas/kong"
)

func TestWrap(t *testing.T) {
	const text = "error: a value = 3 is too small for this\n  try another\nname      a note of some length\n" +
		"anunbreakableword/that/goes/on and on\n"
	const want = "error: a value = 3 is\n    too small for this\n  try another\nname      a note of\n" +
		"    some length\nanunbreakableword/that/goes/on\n    and on\n"
	if got := wrap(text, 22, "    "); got != want {
		t.Errorf("in 22 columns:\n%s", got)
	}
	for _, columns := range []int{0, 10, 200} {
		if got := wrap(text, columns, "    "); got != text {
			t.Errorf("%d columns changed the text:\n%s", columns, got)
		}
	}
	if got, want := wrap("# über zwölf Boxkämpfer", 14, "# "), "# über zwölf\n# Boxkämpfer"; got != want {
		t.Errorf("%q, want %q: a letter is one column", got, want)
	}
	const command = "    anneal x --with \"a=1 b=2\" --out runs/x key=value\n"
	if got, want := wrapCommand(command, 34), "    anneal x --with \"a=1 b=2\" \\\n"+
		"        --out runs/x key=value\n"; got != want {
		t.Errorf("command:\n%swant\n%s", got, want)
	}
}

// Help fits terminals of 80 and 120 columns.
func TestHelpFitsTheTerminal(t *testing.T) {
	var commands []string
	app := kong.Must(&cli{}, quantities...)
	for _, leaf := range app.Model.Leaves(true) {
		commands = append(commands, strings.TrimPrefix(leaf.FullPath(), app.Model.Name))
	}
	if len(commands) < 40 {
		t.Fatalf("%d commands", len(commands))
	}
	for _, width := range []struct {
		columns string
		n       int
	}{{"80", 80}, {"120", 120}} {
		t.Setenv("COLUMNS", width.columns)
		for _, c := range append(commands, "", "data", "explain") {
			_, out, _ := anneal(append(strings.Fields(c), "--help")...)
			for line := range strings.Lines(out) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width.n {
					t.Errorf("anneal %s --help: %d of %d columns\n%s", c, n, width.n, line)
				}
			}
		}
	}
}

// Errors, explanations and dry runs fit, too.
func TestMessagesFitTheTerminal(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	commands := []string{"explain"}
	for _, k := range config.Keys() {
		commands = append(commands, "explain "+k.Name)
	}
	for _, c := range append(commands, "train --recipe llama2-70b --dry-run",
		"train x.yaml --stpes 3", "train --recipe foo") {
		_, out, errs := anneal(strings.Fields(c)...)
		for line := range strings.Lines(out + errs) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("anneal %s: %d columns\n%s", c, n, line)
			}
		}
	}
}
