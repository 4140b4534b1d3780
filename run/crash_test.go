package run

import (
	"errors"
	"os"
	"testing"
)

// Without a run nothing is written, least of all beside a config.yaml in the working directory.
func TestNoReportIsWrittenWithoutARun(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("config.yaml", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if path, err := WriteCrash("", "quit", []byte("stacks")); !errors.Is(err, ErrNoRun) {
		t.Errorf("it wrote %q: %v", path, err)
	}
	if _, err := os.Stat("crash"); err == nil {
		t.Error("the working directory has crash/")
	}
}
