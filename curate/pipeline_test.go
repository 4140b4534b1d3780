package curate

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

func TestPipelineFaultsNameThePlaceAndTheRemedy(t *testing.T) {
	for _, c := range []struct{ text, message, try string }{
		{"stages: [gofer_quality]", "unknown stage gofer_quality", "gopher_quality"},
		{"stages:\n  - gopher_quality: {wrods: {min: 3}}", "unknown key wrods\n  at p.yaml:2", "words"},
		{"stages:\n  - gopher_quality: {words: {minimum: 3}}", "unknown key minimum", "min"},
		{"stages:\n  - gopher_quality: {words: {min: three}}", "three is not a number", "0.3"},
		{"stages:\n  - gopher_quality: {words: {min: 3, max: 2}}", "min 3 above max 2", "keep"},
		{"stages: [c4, c4]", "stage c4 stands twice", ""},
		{"stage: [c4]", "unknown key stage", "stages"},
		{"stages:\n  - c4: {terminal_punctuation: 3}", "neither true nor false", "true or false"},
		{"stages: []", "without stages", "stages:"},
		{"", "no pipeline", "stages:"},
		{"stages: {c4: 1", "not YAML", ""},
		{"stages: c4", "not a list", "stages:"},
	} {
		_, err := Parse([]byte(c.text), "p.yaml")
		var p *Problem
		if !errors.As(err, &p) || !strings.Contains(err.Error(), c.message) || !strings.Contains(p.Try, c.try) {
			t.Errorf("%q: %v, want %q and to try %q", c.text, err, c.message, c.try)
		}
	}
}

// Bounds that say what is published are the same pipeline; others are another.
func TestPipelineHashIsOfTheBounds(t *testing.T) {
	a := mustParse(t, "stages: [gopher_quality]")
	if b := mustParse(t, "stages:\n  - gopher_quality: {words: {min: 50}} # as published\n"); a.Hash() != b.Hash() {
		t.Error("the published bound, written out, is another pipeline")
	}
	for _, text := range []string{"stages:\n  - gopher_quality: {words: {min: 51}}", "stages: [gopher_quality, pii]", "stages: [gopher_quality]\nsignals: true"} {
		if mustParse(t, text).Hash() == a.Hash() {
			t.Errorf("%q is the same pipeline", text)
		}
	}
}

// Any bytes give a pipeline or a problem that says something, within 32 MiB of allocations for 4 KiB of text.
func FuzzParse(f *testing.F) {
	f.Add([]byte(allStages))
	f.Add([]byte("stages: &x [*x]"))
	f.Add([]byte("stages:\n  - ? [a]\n    : b"))
	f.Add([]byte("<<: {stages: [c4]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := Parse(text, "p.yaml")
		runtime.ReadMemStats(&after)
		if (p == nil) == (err == nil) || err != nil && err.Error() == "" {
			t.Fatalf("%q: %v, %v", text, p, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
			t.Errorf("%q allocates %d bytes", text, n)
		}
	})
}
