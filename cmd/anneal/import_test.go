package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A model in one file, such as GGUF, is refused; the error says what an import reads.
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

// A run of weights alone has no optimizer hash: the text says so, and the JSON has an empty string.
func TestWeightsAloneHaveNoOptimizer(t *testing.T) {
	w := newWorkshop(t)
	w.object(exitOK, "train", w.path("run.yaml"), "train.steps=1", "--out", w.path("run"))
	w.object(exitOK, "export", w.path("run"), w.path("hf"))
	w.object(exitOK, "import", w.path("hf"), "--out", w.path("back"))
	code, out, errs := anneal("ckpt", "hash", w.path("back"))
	if code != exitOK || !strings.Contains(out, "\noptimizer  none\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if v := w.object(exitOK, "ckpt", "hash", w.path("back")); v["optimizer_hash"] != "" {
		t.Errorf("the optimizer's hash is %v", v["optimizer_hash"])
	}
}
