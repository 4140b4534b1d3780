package main

import (
	"fmt"
	"strings"

	"anneal/train/config"
)

type explainCmd struct {
	Key string `arg:"" optional:"" help:"A config key, such as model.dim; none lists all."`
}

func (explainCmd) Help() string { return example("anneal explain schedule.warmup") }

func (c explainCmd) Run(s *session) error {
	if c.Key == "" {
		keys := config.Keys()
		for _, k := range keys {
			s.printf("%-26s %-10s %s\n", k.Name, k.Default, firstSentence(k.Doc))
		}
		return s.emit(map[string]any{"keys": keys})
	}
	k, err := config.Explain(c.Key)
	if err != nil {
		return err
	}
	s.printf("%s: %s\n  type     %s\n  default  %s\n", k.Name, k.Doc, typeOf(k), k.Default)
	if k.Rule != "" {
		s.printf("  rule     %s\n", k.Rule)
	}
	return s.emit(k)
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
