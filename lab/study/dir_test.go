package study

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/chart"
	_ "anneal/internal/torture"
)

// A study's directory is its own: it can be opened again with the same options, by one process at a time.
func TestADirectoryHoldsOneStudy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grok")
	d, err := Open(path, "grokking", map[string]int{"seeds": 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, "grokking", map[string]int{"seeds": 2}); err == nil {
		t.Error("a second process opened it")
	}
	picture := &chart.Chart{Series: []chart.Series{{Name: "accuracy", X: []float64{0, 1}, Y: []float64{0, 1}}}}
	if err := d.Write(&Report{Study: "grokking", Seen: "It groks.", Charts: []*chart.Chart{picture}}); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{reportFile: "It groks.", "chart-1.svg": "<svg"} {
		if text, err := os.ReadFile(d.File(name)); !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	again, err := Open(path, "grokking", map[string]int{"seeds": 2})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	for name, options := range map[string]int{"grokking": 3, "collapse": 2} {
		_, err := Open(path, name, map[string]int{"seeds": options})
		if err == nil || !strings.Contains(err.Error(), `"grokking"`) {
			t.Errorf("%s with %d seeds in the directory of another study: %v", name, options, err)
		}
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "mine"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(other, "grokking", nil); err == nil {
		t.Error("a study began in a directory with other files")
	}
}
