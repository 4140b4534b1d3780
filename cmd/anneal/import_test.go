package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A model in one file, such as GGUF, is refused with what an import reads.
func TestImportReadsDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(file, []byte("GGUF"), 0o666); err != nil {
		t.Fatal(err)
	}
	code, _, errs := anneal("import", file, "--out", filepath.Join(t.TempDir(), "run"))
	if code != exitUsage || !strings.Contains(errs, "is a file, not the directory") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}
