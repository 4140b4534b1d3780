package prepare

import (
	"path/filepath"
	"strings"
	"testing"

	"anneal/corpus"
)

// Package corpus knows a data set by its manifest, so it is never read as text.
func TestADataSetIsNoText(t *testing.T) {
	dir := goData(t)
	_, err := corpus.Open([]string{dir}, corpus.Options{})
	if err == nil || !strings.Contains(err.Error(), "not text") {
		t.Errorf("by name: %v", err)
	}
	r, err := corpus.Open([]string{filepath.Dir(dir)}, corpus.Options{})
	if err != nil || len(r.Files()) > 0 {
		t.Errorf("below a directory: %v, %v", r.Files(), err)
	}
}

func TestBuildDataNeedsATokenizer(t *testing.T) {
	_, _, err := BuildData(t.Context(), Text{Paths: []string{"data.go"}}, DataOptions{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "TrainTokenizer") {
		t.Errorf("%v", err)
	}
}
