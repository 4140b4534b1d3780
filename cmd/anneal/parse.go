package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"anneal/config"
	"anneal/internal/nearest"

	"github.com/alecthomas/kong"
)

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

// valueLikeAFlag matches the parser's error for --minutes -1.
var valueLikeAFlag = regexp.MustCompile(`^(--[^:]+): expected .* value but got "(-[^"]*)"`)

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
	if name == "" {
		if m := valueLikeAFlag.FindStringSubmatch(err.Error()); m != nil {
			return &usageError{fmt.Sprintf("%s needs a value, and %s looks like a flag", m[1], m[2]),
				fmt.Sprintf("if it is the value, write %s=%s", m[1], m[2])}
		}
		return &usageError{err.Error(), "try `" + help + "`"}
	}
	e := &usageError{"unknown flag " + name, "try `" + help + "`"}
	var flags []string
	if selected != nil {
		e.message = fmt.Sprintf("`anneal %s` has no flag %s", command, name)
		for _, group := range selected.AllFlags(true) {
			for _, f := range group {
				flags = append(flags, f.Name)
			}
		}
	}
	bare := strings.TrimLeft(name, "-")
	exact, close := overridden(selected, bare)
	switch near := nearest.To(bare, flags); {
	case exact != nil:
		e.hint = fmt.Sprintf("it is a config key: write %s=VALUE, without dashes", strings.Join(exact, "=VALUE or "))
	case near != "":
		e.hint = fmt.Sprintf("did you mean --%s? `%s` lists all flags", near, help)
	case close != nil:
		e.hint = fmt.Sprintf("is it a config key? write %s=VALUE, without dashes", strings.Join(close, "=VALUE or "))
	}
	return e
}

// overridden returns the config keys that a flag may mean, for a command that takes config keys: exact are the keys
// that end in the flag's name, close those that end in the nearest name.
func overridden(command *kong.Node, name string) (exact, close []string) {
	takes := func(p *kong.Positional) bool { return p.Name == "section.key=value" }
	if command == nil || !slices.ContainsFunc(command.Positional, takes) {
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
