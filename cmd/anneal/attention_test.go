package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Patterns are drawn with their cost, as text, picture and JSON; an invalid pattern is a usage error.
func TestAttentionShow(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "p.svg")
	code, out, errs := anneal("attention", "show", "window:64,full,window:64", "--len", "256", "--svg", svg)
	if code != exitOK || !strings.Contains(out, "43.7 %") || !strings.Contains(out, "62.5 %") ||
		!strings.Contains(out, "⣿⣿⣷⣄") {
		t.Errorf("exit %d; window:64 in 256 tokens has 14,368 of 32,896 pairs, 43.7 %%, and of three layers "+
			"62.5 %%:\n%s%s", code, out, errs)
	}
	if picture, err := os.ReadFile(svg); err != nil || !strings.HasPrefix(string(picture), "<svg") {
		t.Errorf("the picture is %.20q, %v", picture, err)
	}
	w := newWorkshop(t)
	v := w.object(exitOK, "attention", "show", "bigbird", "--len", "4096", "--heads", "4", "--head", "3")
	w.keys(v, "length", "heads", "patterns", "density")
	for _, args := range [][]string{
		{"window:0"}, {"strided", "--heads", "1"}, {"full", "--len", "0"}, {"full", "--heads", "0"},
		{"full", "--head", "2"},
	} {
		w.object(exitUsage, append([]string{"attention", "show"}, args...)...)
	}
}
