package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"anneal/config"
	"anneal/internal/nearest"

	"github.com/alecthomas/kong"
)

// notText refuses an argument that is not valid UTF-8. The parser would replace its bytes, and so lead to another file.
func notText(args []string) error {
	for _, a := range args {
		if !utf8.ValidString(a) {
			return &usageError{fmt.Sprintf("the argument %q is not valid UTF-8", a),
				"if it is a file or directory, rename it or use a link"}
		}
	}
	return nil
}

// unknownFlag returns the first flag that no command has; "" if there is none. Its value may have been taken for an
// argument.
func unknownFlag(app *kong.Application, args []string) string {
	known := map[string]bool{}
	kong.Visit(app, func(n kong.Visitable, next kong.Next) error {
		if f, ok := n.(*kong.Flag); ok {
			for _, name := range append(f.Aliases, f.Name) {
				known["--"+name] = true
			}
			known["--no-"+f.Name] = f.IsBool()
		}
		return next(nil)
	})
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		switch {
		case a == "--":
			return ""
		case strings.HasPrefix(name, "--") && !known[name]:
			return name
		}
	}
	return ""
}

// Errors of the parser: for --minutes -1, and for a word that is no command, or one argument too many.
var (
	valueLikeAFlag = regexp.MustCompile(`^(--[^:]+): expected .* value but got "(-[^"]*)"`)
	unexpected     = regexp.MustCompile(`^unexpected argument ([^ ,]+)`)
)

// parseError explains the fault of a command line and suggests a correction. unknown is a flag that no command has, or
// "".
func parseError(err error, unknown string) error {
	help := "anneal --help"
	command, selected := commandOf(err)
	if command != "" {
		help = fmt.Sprintf("anneal %s --help", command)
	}
	name := unknown
	if of, ok := strings.CutPrefix(err.Error(), "unknown flag "); ok { // the flag may belong to another command
		name, _, _ = strings.Cut(of, ",") // without the parser's suggestion
	}
	if m := valueLikeAFlag.FindStringSubmatch(err.Error()); m != nil {
		return &usageError{fmt.Sprintf("%s needs a value, and %s looks like a flag", m[1], m[2]),
			fmt.Sprintf("if it is the value, write %s=%s", m[1], m[2])}
	}
	if m := unexpected.FindStringSubmatch(err.Error()); m != nil && name == "" {
		return wordError(err, m[1], command, help)
	}
	if name == "" {
		return &usageError{err.Error(), "try `" + help + "`"}
	}
	e := &usageError{"unknown flag " + name, "try `" + help + "`"}
	if selected == nil {
		return e
	}
	e.message = fmt.Sprintf("`anneal %s` has no flag %s", command, name)
	if hint := flagHint(selected, command, strings.TrimLeft(name, "-")); hint != "" {
		e.hint = hint
	}
	return e
}

// wordError explains a word that is neither a command nor an argument.
func wordError(err error, word, command, help string) error {
	e := &usageError{err.Error(), "try `" + help + "`"}
	names := subcommands(err)
	if len(names) == 0 { // a command that takes no further argument
		return e
	}
	whole := strings.TrimSpace(command + " " + word)
	e.message = "anneal has no command " + whole
	switch near := cmp.Or(nearest.Beginning(word, names), nearest.To(word, names)); {
	case commandsElsewhere[whole] != "":
		e.hint = fmt.Sprintf("try %s; `%s` lists all commands", commandsElsewhere[whole], help)
	case near != "":
		e.hint = fmt.Sprintf("did you mean `anneal %s`? `%s` lists all commands",
			strings.TrimSpace(command+" "+near), help)
	}
	return e
}

// subcommands returns the names of the commands below the one that was parsed before the mistake.
func subcommands(err error) (names []string) {
	var p *kong.ParseError
	if !errors.As(err, &p) || p.Context == nil {
		return nil
	}
	node := p.Context.Model.Node
	if selected := p.Context.Selected(); selected != nil {
		node = selected
	}
	for _, c := range node.Children {
		names = append(names, c.Name)
	}
	return names
}

// flagHint says what a flag that a command lacks may mean.
func flagHint(selected *kong.Node, command, name string) string {
	help := fmt.Sprintf("anneal %s --help", command)
	var flags []string
	for _, group := range selected.AllFlags(true) {
		for _, f := range group {
			flags = append(flags, f.Name)
		}
	}
	exact, close := overridden(selected, name)
	near := cmp.Or(nearest.Beginning(name, flags), nearest.To(name, flags))
	if other := flagsElsewhere[name]; slices.Contains(flags, other) {
		near = other
	}
	switch setting := config.Elsewhere(name); {
	case exact != nil:
		return fmt.Sprintf("it is a config key: write %s=VALUE, without dashes", strings.Join(exact, "=VALUE or "))
	case keys(selected) && setting != "" && !slices.Contains(flags, flagsElsewhere[name]):
		return "in the config, try " + setting
	case near != "":
		return fmt.Sprintf("did you mean --%s? `%s` lists all flags", near, help)
	case argumentsElsewhere[name] && len(selected.Positional) > 0:
		argument := strings.ToUpper(selected.Positional[0].Name)
		return fmt.Sprintf("give it as an argument: anneal %s %s", command, argument)
	case close != nil:
		return fmt.Sprintf("is it a config key? write %s=VALUE, without dashes", strings.Join(close, "=VALUE or "))
	}
	return ""
}

// overridden returns the config keys that a flag may mean, for a command that takes config keys: exact are the keys
// that end in the flag's name, close those that end in the nearest name.
func overridden(command *kong.Node, name string) (exact, close []string) {
	if !keys(command) {
		return nil, nil
	}
	name = strings.ReplaceAll(name, "-", "_")
	if exact = config.Find(name); exact != nil {
		return exact, nil
	}
	var leaves []string
	for _, k := range config.Keys() {
		leaves = append(leaves, k.Name[strings.LastIndexByte(k.Name, '.')+1:])
	}
	return nil, config.Find(nearest.To(name, leaves))
}

// keys reports whether a command takes config keys.
func keys(command *kong.Node) bool {
	takes := func(p *kong.Positional) bool { return p.Name == "section.key=value" }
	return slices.ContainsFunc(command.Positional, takes)
}

// commandOf returns the command that was parsed before the mistake, and its words.
func commandOf(err error) (words string, command *kong.Node) {
	var p *kong.ParseError
	if !errors.As(err, &p) || p.Context == nil {
		return "", nil
	}
	list := strings.Fields(p.Context.Command())
	argument := func(w string) bool { return strings.HasPrefix(w, "<") || strings.HasPrefix(w, "[") }
	if i := slices.IndexFunc(list, argument); i >= 0 {
		list = list[:i]
	}
	return strings.Join(list, " "), p.Context.Selected()
}
