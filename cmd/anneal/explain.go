package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"anneal/config"
	"anneal/lab/primer"
)

type explainCmd struct {
	Key string `arg:"" optional:"" complete:"topics" help:"A key, section or topic, such as model.dim, model or bf16. Default: all keys."`
}

func (explainCmd) Help() string {
	return example("anneal explain schedule.warmup", "anneal explain bf16", "anneal explain adamw",
		"anneal explain zero") +
		"\n\nIt explains config keys and, with computed tables, these topics: " +
		strings.Join(primer.Topics(), ", ") + "."
}

func (c explainCmd) Run(s *session) error {
	keys := keysOf(c.Key)
	table, err := primer.Find(c.Key)
	if err != nil {
		return err
	}
	if table != nil && len(keys) != 1 {
		return explainTable(s, table, nil)
	}
	if keys == nil {
		_, err := config.Explain(c.Key)
		return err
	}
	if len(keys) > 1 {
		s.listKeys(keys)
		return s.emit(map[string]any{"keys": keys})
	}
	k := keys[0]
	s.prosef("    ", "%s: %s\n", k.Name, strings.ReplaceAll(k.Doc, "\n", "\n  "))
	const hang = "           "
	s.prosef(hang, "  type     %s\n  default  %s\n", typeOf(k), cmp.Or(k.Default, "not set"))
	if k.Rule != "" {
		s.prosef(hang, "  rule     %s\n", k.Rule)
	}
	if k.Name == "precision" {
		return explainPrecision(s, k)
	}
	if k.Name == "model.attention" {
		return explainAttention(s, k)
	}
	if table != nil {
		return explainTable(s, table, &k)
	}
	return s.emit(k)
}

// listKeys prints a line for each key.
func (s *session) listKeys(keys []config.Key) {
	name, value := 0, 0
	for _, k := range keys {
		name, value = max(name, len(k.Name)), max(value, len(k.Default))
	}
	for _, k := range keys {
		s.row(fmt.Sprintf("%-*s %-*s", name, k.Name, value, k.Default), firstSentence(k.Doc))
	}
}

// keysOf returns the keys whose name equals name or ends in it, and the keys of the section name. It returns all keys
// for "", and nil if nothing has that name.
func keysOf(name string) (keys []config.Key) {
	found := config.Find(name)
	for _, k := range config.Keys() {
		if name == "" || slices.Contains(found, k.Name) || strings.Contains("."+k.Name, "."+name+".") {
			keys = append(keys, k)
		}
	}
	return keys
}

func typeOf(k config.Key) string {
	switch {
	case k.Values != nil:
		return "one of " + strings.Join(k.Values, ", ")
	case k.Unit != "" && !strings.Contains(k.Type, k.Unit):
		return fmt.Sprintf("%s (%s)", k.Type, k.Unit)
	}
	return k.Type
}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	s, _, _ = strings.Cut(s, ". ")
	return strings.TrimSuffix(s, ".")
}
