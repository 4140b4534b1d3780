package main

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"anneal/config"
	"anneal/lab/primer"

	"github.com/alecthomas/kong"
)

type shellsCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell,man" help:"bash, zsh, fish or powershell; man prints a manual page."`
}

func (shellsCmd) Help() string {
	return example("anneal completion bash > ~/.local/share/bash-completion/completions/anneal",
		"source <(anneal completion zsh)",
		"anneal completion fish > ~/.config/fish/completions/anneal.fish",
		"anneal completion powershell | Out-String | Invoke-Expression",
		"anneal completion man > ~/.local/share/man/man1/anneal.1") +
		"\n\nThe scripts ask anneal itself, so they know its commands, flags, config keys and their values " +
		"whatever the version."
}

//go:embed completion
var completions embed.FS

func (c shellsCmd) Run(s *session) error {
	if c.Shell == "man" {
		return s.emitText(manPage(kong.Must(&cli{}, quantities...).Model))
	}
	ending := c.Shell
	if c.Shell == "powershell" {
		ending = "ps1"
	}
	text, err := completions.ReadFile("completion/anneal." + ending)
	if err != nil {
		return err
	}
	return s.emitText(string(text))
}

// emitText prints the result of a command that is a text.
func (s *session) emitText(text string) error {
	s.printf("%s", text)
	return s.emit(map[string]any{"text": text})
}

// completeWord is the hidden command of the completion scripts: `anneal __complete WORD… @CURRENT`.
const completeWord = "__complete"

// filesToo is the last line of an answer to which the shell adds the names of files.
const filesToo = ":files"

// complete prints the completions of the last word, one a line, with help after a tab. The last word begins with @,
// because PowerShell does not pass empty words.
func complete(w io.Writer, app *kong.Node, words []string) error {
	if len(words) == 0 {
		return nil
	}
	current := strings.TrimPrefix(words[len(words)-1], "@")
	answers := answersFor(app, words[:len(words)-1], current)
	for _, a := range answers.list {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", a.word, a.help); err != nil {
			return err
		}
	}
	if answers.files {
		_, err := fmt.Fprintln(w, filesToo)
		return err
	}
	return nil
}

type candidate struct{ word, help string }

type answers struct {
	list  []candidate
	files bool
}

// add adds a word if it continues what is typed.
func (a *answers) add(current, word, help string) {
	if strings.HasPrefix(word, current) {
		a.list = append(a.list, candidate{word, firstSentence(help)})
	}
}

// answersFor walks the grammar along the words before the current one.
func answersFor(node *kong.Node, before []string, current string) (a answers) {
	flags, positional := node.Flags, 0
	var waiting *kong.Flag // takes the next word as its value
	for _, word := range before {
		switch {
		case waiting != nil:
			waiting = nil
		case strings.HasPrefix(word, "-"):
			name, _, given := strings.Cut(word, "=")
			if f := findFlag(flags, name); f != nil && !f.IsBool() && !given {
				waiting = f
			}
		default:
			if child := findCommand(node, word); child != nil {
				node, flags, positional = child, append(flags[:len(flags):len(flags)], child.Flags...), 0
			} else {
				positional++
			}
		}
	}
	switch {
	case waiting != nil:
		a.values(waiting.Value, current)
	case strings.HasPrefix(current, "-") && strings.Contains(current, "="):
		a.given(flags, current)
	case strings.HasPrefix(current, "-"):
		for _, f := range flags {
			if !f.Hidden {
				a.add(current, "--"+f.Name, f.Help)
			}
		}
	case len(node.Children) > 0 && positional == 0:
		for _, child := range node.Children {
			if !child.Hidden {
				a.add(current, child.Name, child.Help)
			}
		}
	case len(node.Positional) > 0:
		a.arguments(node.Positional, positional, current)
	}
	return a
}

// given adds the possible values of a flag that is typed in one word with its value, such as --to=hf.
func (a *answers) given(flags []*kong.Flag, current string) {
	name, value, _ := strings.Cut(current, "=")
	f := findFlag(flags, name)
	if f == nil || f.IsBool() {
		return
	}
	a.values(f.Value, value)
	for i := range a.list {
		a.list[i].word = name + "=" + a.list[i].word
	}
}

// arguments adds the possible values of the argument with a number; the last argument may take several values.
func (a *answers) arguments(list []*kong.Positional, number int, current string) {
	overrides := list[len(list)-1]
	if overrides.Name == "section.key=value" {
		a.keys(current)
		if number >= len(list)-1 {
			return
		}
	}
	if number >= len(list) {
		if !overrides.IsCumulative() {
			return
		}
		number = len(list) - 1
	}
	a.values(list[number], current)
}

// values adds the possible names of a value, or files. A tag complete:"recipes" or complete:"topics" selects them.
func (a *answers) values(v *kong.Value, current string) {
	var names []string
	switch v.Tag.Get("complete") {
	case "recipes":
		names = config.Recipes()
	case "topics":
		names = primer.Topics()
		for _, k := range config.Keys() {
			a.add(current, k.Name, k.Doc)
		}
	default:
		if names = v.EnumSlice(); v.Enum == "" {
			a.files = true
			return
		}
	}
	for _, name := range names {
		a.add(current, name, "")
	}
}

// keys adds config keys and, after the =, the possible names of a key's value.
func (a *answers) keys(current string) {
	for _, k := range config.Keys() {
		if !strings.HasPrefix(current, k.Name+"=") {
			a.add(current, k.Name+"=", k.Doc)
			continue
		}
		for _, name := range k.Values {
			a.add(current, k.Name+"="+name, "")
		}
		if k.Type == "true or false" {
			a.add(current, k.Name+"=true", "")
			a.add(current, k.Name+"=false", "")
		}
	}
}

func findCommand(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

func findFlag(flags []*kong.Flag, word string) *kong.Flag {
	for _, f := range flags {
		if "--"+f.Name == word {
			return f
		}
	}
	return nil
}
