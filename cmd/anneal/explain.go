package main

import (
	"fmt"
	"slices"
	"strings"

	"anneal/train/config"
)

type explainCmd struct {
	Key string `arg:"" optional:"" help:"A config key or a section, such as model.dim or model; none lists all."`
}

func (explainCmd) Help() string { return example("anneal explain schedule.warmup") }

func (c explainCmd) Run(s *session) error {
	keys := keysOf(c.Key)
	if keys == nil {
		_, err := config.Explain(c.Key)
		return err
	}
	if len(keys) > 1 {
		for _, k := range keys {
			s.printf("%-40s %-10s %s\n", k.Name, k.Default, firstSentence(k.Doc))
		}
		return s.emit(map[string]any{"keys": keys})
	}
	k := keys[0]
	s.printf("%s: %s\n  type     %s\n  default  %s\n", k.Name, k.Doc, typeOf(k), k.Default)
	if k.Rule != "" {
		s.printf("  rule     %s\n", k.Rule)
	}
	if k.Name == "precision" {
		return explainPrecision(s, k)
	}
	if k.Name == "model.attention" {
		return explainAttention(s, k)
	}
	return s.emit(k)
}

// keysOf returns the keys that have a name or end in it, else those of a section, all for "", or nil if there is nothing of that name.
func keysOf(name string) (keys []config.Key) {
	found := config.Find(name)
	for _, k := range config.Keys() {
		if name == "" || slices.Contains(found, k.Name) || found == nil && strings.Contains("."+k.Name, "."+name+".") {
			keys = append(keys, k)
		}
	}
	return keys
}

func typeOf(k config.Key) string {
	switch {
	case k.Values != nil:
		return "one of " + strings.Join(k.Values, ", ")
	case k.Unit != "":
		return fmt.Sprintf("%s (%s)", k.Type, k.Unit)
	}
	return k.Type
}

func firstSentence(s string) string {
	if i := strings.IndexAny(s, ".;"); i > 0 && i+1 < len(s) && s[i+1] == ' ' {
		return s[:i]
	}
	return strings.TrimSuffix(s, ".")
}
