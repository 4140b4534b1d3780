package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A key that this version does not know may be of a newer one, in the file of a run but not on a command line.
func TestAnUnknownKeyOfARunMayBeOfANewerVersion(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("seed: 1\nnewkey: 3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	const advice = "the version of anneal that made the run"
	if _, err := Config(dir); err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("the error is %v, without %q", err, advice)
	}
	if _, err := runDir(dir).load("other=3"); err == nil || strings.Count(err.Error(), advice) != 1 {
		t.Errorf("the error is %v, with %q for the file's key alone", err, advice)
	}
}
