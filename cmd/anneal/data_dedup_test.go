package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Impossible values and flags without effect are refused, not replaced by defaults; a filter that was too small is
// reported.
func TestDedupFlags(t *testing.T) {
	w := newWorkshop(t)
	for want, flags := range map[string]string{
		"nothing to look for": "--exact none --no-near",
		"cannot combine none": "--exact document,none",

		"--verify has no effect with --no-near":        "--no-near --verify 0.7",
		"--words has no effect with --no-near":         "--no-near --words 4",
		"--bands has no effect with --no-near":         "--no-near --bands 3",
		"--rows has no effect with --no-near":          "--no-near --rows 3 --ngrams --bloom 1MiB",
		"--ngram-words has no effect without --ngrams": "--ngram-words 5",
		"--ngram-share has no effect without --ngrams": "--ngram-share 0.1 --no-near",
		"--bloom has no effect without --ngrams":       "--bloom 1MiB",
		"--min-words has no effect without paragraphs": "--min-words 5",

		"not a similarity": "--verify 1.5",
		"--bands is 0":     "--bands 0",
		"--min-words is 0": "--min-words 0",
		"not a share":      "--ngrams --ngram-share 0",
	} {
		args := append([]string{"data", "dedup", w.path("text"), "--out", w.path("none")}, strings.Fields(flags)...)
		if code, _, errs := anneal(args...); code != exitUsage || !strings.Contains(errs, want) ||
			!strings.Contains(errs, "\n  try ") {
			t.Errorf("%s: exit %d\n%s", flags, code, errs)
		}
	}
	w.object(exitOK, "data", "dedup", w.path("text"), "--out", w.path("lines"), "--no-near", "--exact", "line",
		"--min-words", "5") // and no default is taken for a flag
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, "%c%c%c ", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
	}
	if err := os.WriteFile(w.path("words.txt"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for size, warned := range map[string]bool{"1B": true, "1MiB": false} {
		code, _, errs := anneal("data", "dedup", w.path("words.txt"), "--out", w.path("of"+size), "--no-near",
			"--ngrams", "--ngram-words", "2", "--bloom", size)
		if code != exitOK || strings.Contains(errs, "--bloom is too small") != warned {
			t.Errorf("--bloom %s: exit %d\n%s", size, code, errs)
		}
	}
}

// A unit that is given twice is compared and counted once.
func TestDedupCountsAUnitOnce(t *testing.T) {
	w := workshop{t, t.TempDir()}
	write(t, w.path("a.txt"), "the same line of words\nother words here one\n")
	write(t, w.path("b.txt"), "the same line of words\nmore words here two\n")
	code, out, errs := anneal("data", "dedup", w.path("a.txt"), w.path("b.txt"), "--out", w.path("out"), "--exact",
		"line,document,line")
	if code != exitOK || strings.Count(out, "dropped 1 repeated line\n") != 1 || strings.Contains(out, "2 repeated") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
