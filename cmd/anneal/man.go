package main

import (
	"fmt"
	"strings"

	"anneal/internal/buildinfo"

	"github.com/alecthomas/kong"
)

// manPage is the manual page anneal(1), in the macros of man(7): every command with its arguments and flags.
func manPage(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH ANNEAL 1 \"\" \"anneal %s\" \"User Commands\"\n", roff(buildinfo.Version))
	fmt.Fprintf(&b, ".SH NAME\nanneal \\- pre-train language models\n")
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B anneal\n.I COMMAND\n[arguments] [flags]\n")
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n.PP\n", roff(strings.ReplaceAll(description, "\n\n", "\n")))
	fmt.Fprintf(&b, "`anneal COMMAND \\-\\-help` shows examples; `anneal explain` lists the keys of a config.\n")
	fmt.Fprintf(&b, ".SH COMMANDS\n")
	manCommands(&b, app.Node, "anneal")
	fmt.Fprintf(&b, ".SH FLAGS OF ALL COMMANDS\n")
	manFlags(&b, app.Flags)
	return b.String()
}

func manCommands(b *strings.Builder, n *kong.Node, words string) {
	for _, child := range n.Children {
		name := words + " " + child.Name
		if len(child.Children) > 0 {
			manCommands(b, child, name)
			continue
		}
		fmt.Fprintf(b, ".SS %s", roff(name))
		for _, p := range child.Positional {
			fmt.Fprintf(b, " %s", roff(p.Summary()))
		}
		fmt.Fprintf(b, "\n%s\n", roff(child.Help))
		manFlags(b, child.Flags)
	}
}

func manFlags(b *strings.Builder, flags []*kong.Flag) {
	for _, f := range flags {
		if !f.Hidden {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(f.String())), roff(helpOf(f.Value)))
		}
	}
}

// roff escapes a text for man(7).
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
