package config

import (
	"strings"
	"testing"
)

// Patterns are given as a text or a list; what follows from the context and the seed is filled in and survives a round
// trip.
func TestPatternsOfLayers(t *testing.T) {
	for _, c := range []struct{ model, want string }{
		{"", "full"},
		{"attention: window:64", "window:64"},
		{"attention: [window:64, window:64, full]", "window:64,window:64,full"},
		{"attention:\n    - window:64\n    - bigbird:seed=3",
			"window:64,bigbird:window=2:random=3:global=1:block=64:seed=3"},
		{"context: 4096\n  attention: [strided, bigbird, longnet]",
			"strided:64,bigbird:window=2:random=3:global=1:block=64:seed=9,longnet:512/1:1024/2:2048/4:4096/8"},
	} {
		text := minimal + "seed: 9\n"
		if c.model != "" {
			text += "model:\n  " + c.model + "\n"
		}
		cfg, err := parse([]byte(text), "run.yaml", nil)
		if err != nil {
			t.Fatalf("%s: %v", c.model, err)
		}
		if cfg.Model.Attention.String() != c.want {
			t.Errorf("%s is read as %s, want %s", c.model, cfg.Model.Attention, c.want)
		}
		again, err := parse(cfg.YAML(), "again.yaml", []string{"model.dim=768", "model.context=512", "seed=1"})
		if err != nil {
			t.Fatalf("%s: read back: %v", c.want, err)
		}
		if again.Model.Attention.String() != c.want {
			t.Errorf("%s: read back as %s", c.want, again.Model.Attention)
		}
	}
}

// What cannot work is said before anything is made, with the key, its place and what to try.
func TestPatternsThatCannotWorkAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"window:0":     "leaves query 0 without a key",
		"window":       "does not say how many keys",
		"windows:3":    `unknown attention pattern "windows"`,
		"longnet:64/2": "leaves query 0 of head 1 without a key",
		"full,":        "pattern is empty",
		"full,bigbird:random=99999999:block=1\"\n  context: 65536\ntrain:\n" +
			"  batch_tokens: \"65536": "too many separate blocks of keys",
		"full,full,full,full,full,full,full": "lists 7 patterns for model.layers = 6",
	} {
		p := problemsOf(t, minimal+"model:\n  attention: \""+text+"\"\n")
		if len(p) != 1 || p[0].Key != "model.attention" || !strings.Contains(p[0].Message, want) || p[0].Try == "" ||
			!strings.HasPrefix(p[0].At, "run.yaml:4") {
			t.Errorf("%s: %+v; want %q", text, p, want)
		}
	}
	if cfg, err := parse([]byte(minimal), "run.yaml", []string{"model.attention=[window:64, full]"}); err != nil ||
		cfg.Model.Attention.String() != "window:64,full" {
		t.Errorf("a list on the command line: %+v, %v", cfg, err)
	}
	if p := problemsOf(t, minimal, "model.attention=strided", "model.heads=1"); len(p) != 1 ||
		p[0].Key != "model.attention" {
		t.Errorf("strided with one head: %+v", p)
	}
	if p := problemsOf(t, minimal+"model:\n  attention: [window:64, {full: 1}]\n"); len(p) != 1 ||
		p[0].Key != "model.attention" {
		t.Errorf("a list with a mapping in it: %+v", p)
	}
}
