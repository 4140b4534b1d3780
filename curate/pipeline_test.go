package curate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

func TestPipelineFaultsNameThePlaceAndTheRemedy(t *testing.T) {
	for _, c := range []struct{ text, message, try string }{
		{"stages: [gofer_quality]", "unknown stage gofer_quality", "gopher_quality"},
		{"stages:\n  - gopher_quality: {wrods: {min: 3}}", "unknown key wrods\n  at p.yaml:2", "words"},
		{"stages:\n  - gopher_quality: {words: {minimum: 3}}", "unknown key minimum", "min"},
		{"stages:\n  - gopher_quality: {words: {min: three}}", "three is not a number", "0.3"},
		{"stages:\n  - gopher_quality: {words: {min: 3, max: 2}}", "min 3 above max 2", "below max"},
		{"stages: [c4, c4]", "stage c4 is given twice", ""},
		{"stage: [c4]", "unknown key stage", "stages"},
		{"stages:\n  - c4: {terminal_punctuation: 3}", "neither true nor false", "true or false"},
		{"stages: []", "without stages", "stages:"},
		{"", "no pipeline", "stages:"},
		{"stages: {c4: 1", "not YAML", ""},
		{"stages: c4", "not a list", "stages:"},
		{"stages:\n  - dedup: {ngram_share: 0.2}", "ngram_share has no effect without ngrams: true\n  at", "both"},
		{"stages:\n  - dedup: {near: false, verify: 0.9}", "verify has no effect with near: false", "one of them"},
		{"stages:\n  - dedup: {min_words: 9}", "no effect without paragraphs", "exact: [document, paragraph]"},
		{"stages:\n  - dedup: {exact: [none, line]}", "exact cannot combine none", "exact: [none]"},
		{"stages:\n  - dedup: {exact: [], near: false}", "nothing to look for: exact: [none]", "exact: [d"},
		{"stages:\n  - dedup: {rows: 2.5}", "rows is 2.5", "a whole number"},
		{"stages:\n  - dedup: {verify: 7}", "verify: 7 is not a similarity", "verify: 0.7"},
	} {
		_, err := Parse([]byte(c.text), "p.yaml")
		var p *Problem
		if !errors.As(err, &p) || !strings.Contains(err.Error(), c.message) || !strings.Contains(p.Try, c.try) {
			t.Errorf("%q: %v, want %q and to try %q", c.text, err, c.message, c.try)
		}
	}
}

// Some editors begin a file with a byte order mark.
func TestPipelinesMayHaveAByteOrderMark(t *testing.T) {
	text := "stages: [gopher_quality]"
	if mustParse(t, "\ufeff"+text).Hash() != mustParse(t, text).Hash() {
		t.Error("the pipeline is another one")
	}
}

// Bounds that say what is published are the same pipeline; others are another.
func TestPipelineHashIsOfTheBounds(t *testing.T) {
	a := mustParse(t, "stages: [gopher_quality]")
	if b := mustParse(t, "stages:\n  - gopher_quality: {words: {min: 50}} # as published\n"); a.Hash() != b.Hash() {
		t.Error("the published bound, written out, is another pipeline")
	}
	for _, text := range []string{
		"stages:\n  - gopher_quality: {words: {min: 51}}", "stages: [gopher_quality, pii]",
		"stages: [gopher_quality]\nsignals: true",
	} {
		if mustParse(t, text).Hash() == a.Hash() {
			t.Errorf("%q is the same pipeline", text)
		}
	}
}

// Any bytes give a pipeline or a problem that says something, within 32 MiB of allocations for 4 KiB of text.
func FuzzParse(f *testing.F) {
	files := []string{allStages, "stages: &x [*x]", "stages:\n  - ? [a]\n    : b", "<<: {stages: [c4]}"}
	for i := range files {
		f.Add(uint8(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		text := filetest.Edit(t, []byte(files[int(which)%len(files)]), edits)
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

// A stage that is no filter, reads a file and has options: the words of the file, of at least so many letters, drop a
// document.
type bannedWords struct {
	words []string
	least float64
}

func (b bannedWords) Apply(d *Doc) Verdict {
	for _, w := range b.words {
		if float64(len(w)) >= b.least && strings.Contains(string(d.Text), w) {
			return Verdict{Drop: true, Rule: "banned.word", Value: float64(len(w))}
		}
	}
	return Verdict{}
}

func withBanned(t *testing.T) (loads *int) {
	loads = new(int)
	before := kinds
	t.Cleanup(func() { kinds = before })
	kinds = append(slices.Clone(kinds), kind{name: "banned", rules: []string{"word"}, options: []option{
		{name: "list", value: "", required: true, files: true}, {name: "least", value: 3.0},
		{name: "case", value: "lower", among: []string{"lower", "upper"}},
	}, load: func(o given) (func() Stage, error) {
		*loads++
		text, err := os.ReadFile(o.text("list"))
		words := strings.Fields(string(text))
		if err == nil && len(words) == 0 {
			err = errors.New("an empty list\n  try a word a line")
		}
		return func() Stage { return bannedWords{words, o.number("least")} }, err
	}})
	return loads
}

// A stage's file is read once, from beside the pipeline, by its bytes it is in the hash; its rules stand in the
// report.
func TestStageWithOptionsAndAFile(t *testing.T) {
	loads := withBanned(t)
	dir, in := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(text string) (*Pipeline, error) { return Parse([]byte(text), filepath.Join(dir, "p.yaml")) }
	write("words", "garden ox")
	p, err := parse("stages:\n  - banned: {list: words}\n")
	if err != nil {
		t.Fatal(err)
	}
	writeInput(t, in, 3)
	out, err := Run(context.Background(), Options{Pipeline: p, Paths: []string{in}, Dir: t.TempDir(), Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	rules := out.Report.Stages[0].Rules
	if *loads != 1 || len(rules) != 1 || rules[0].Name != "word" || rules[0].Documents == 0 ||
		rules[0].Documents != out.Report.Documents-out.Report.Kept {
		t.Errorf("%d loads, rules %+v, %d of %d kept", *loads, rules, out.Report.Kept, out.Report.Documents)
	}
	hashes := map[string]string{}
	for _, c := range []struct{ words, text string }{
		{"garden ox", "{list: words}"}, {"garden oz", "{list: words}"}, {"garden ox", "{list: words, least: 2}"},
		{"garden ox", "{list: words, case: upper}"},
	} {
		write("words", c.words)
		p, err := parse("stages:\n  - banned: " + c.text)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := hashes[p.Hash()]; ok {
			t.Errorf("%v and %s are one pipeline", c, other)
		}
		hashes[p.Hash()] = fmt.Sprint(c)
	}
	write("empty", "")
	for _, c := range []struct{ text, message, try string }{
		{"banned", "stage banned needs list\n  at ", ""},
		{"banned: {list: nothing}", "list: ", "the path of a file"},
		{"banned: {list: .}", "is not a file", "the path of a file"},
		{"banned: {list: 3}", "3 is not a string", "quotes"},
		{"banned: {list: words, least: few}", "few is not a number", "0.3"},
		{"banned: {list: words, case: uper}", "case cannot be uper", "upper"},
		{"banned: {lst: words}", "unknown key lst", "list"},
		{"banned: {list: empty}", "stage banned: an empty list", "a word a line"},
	} {
		_, err := parse("stages:\n  - " + c.text)
		var p *Problem
		if !errors.As(err, &p) || !strings.Contains(err.Error(), c.message) || !strings.Contains(p.Try, c.try) ||
			!strings.HasSuffix(p.At, "p.yaml:2") {
			t.Errorf("%q: %v, want %q and to try %q", c.text, err, c.message, c.try)
		}
	}
}
