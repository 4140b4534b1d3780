package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

// If a small file that a command reads is replaced by a pipe, a device, a directory or 64 GiB, the command refuses it
// within 100 ms and 64 MiB, in a message with its path.
func TestWhatIsNoSmallFileIsRefusedAtOnce(t *testing.T) {
	w := newWorkshop(t)
	w.object(exitOK, "train", w.path("run.yaml"), "train.steps=2", "--out", w.path("run"))
	checkpoint := only(t, filepath.Join(w.path("run"), "checkpoints"), "step-")
	for _, c := range []struct {
		name string // of the file; its directory is a copy of from
		from string
		args func(dir, path string) []string
	}{
		{"run.yaml", "", func(_, path string) []string { return []string{"train", path, "--out", w.path("r")} }},
		{"p.yaml", "", func(_, path string) []string {
			return []string{"data", "curate", path, w.path("text"), "--dry-run"}
		}},
		{"words.txt", "", func(dir, _ string) []string {
			write(t, filepath.Join(dir, "p.yaml"), "stages: [{bad_words: {list: words.txt}}]\n")
			return []string{"data", "curate", filepath.Join(dir, "p.yaml"), w.path("text"), "--dry-run"}
		}},
		{"text", "", func(_, path string) []string {
			return []string{"tokenizer", "encode", w.path("tok.json"), path}
		}},
		{"ids", "", func(_, path string) []string { return []string{"tokenizer", "decode", w.path("tok.json"), path} }},
		{"tokenizer.json", "", func(_, path string) []string {
			return []string{"tokenizer", "encode", path, w.path("run.yaml")}
		}},
		{"vocab.json", "", func(_, path string) []string {
			return []string{"tokenizer", "encode", path, w.path("run.yaml")}
		}},
		{"a.tiktoken", "", func(_, path string) []string {
			return []string{"tokenizer", "encode", path, w.path("run.yaml")}
		}},
		{"model.bin", "", func(_, path string) []string {
			return []string{"data", "classifier", "predict", path, w.path("text")}
		}},
		{"config.json", "", func(dir, _ string) []string {
			return []string{"import", dir, "--out", w.path("imported")}
		}},
		{"dataset.json", w.path("data"), func(dir, _ string) []string { return []string{"data", "verify", dir} }},
		{"tokenizer.json", w.path("data"), func(dir, _ string) []string { return []string{"data", "verify", dir} }},
		{"config.yaml", w.path("run"), func(dir, _ string) []string { return []string{"resume", dir} }},
		{"tokenizer.json", w.path("run"), func(dir, _ string) []string { return []string{"generate", dir} }},
		{"rewind.json", w.path("run"), func(dir, _ string) []string { return []string{"rewind", dir, "--to", "0"} }},
		{"metrics.jsonl", w.path("run"), func(dir, _ string) []string { return []string{"rewind", dir, "--to", "0"} }},
		{checkpoint + "/MANIFEST.json", w.path("run"),
			func(dir, _ string) []string { return []string{"ckpt", "verify", dir} }},
		{checkpoint + "/state.json", w.path("run"),
			func(dir, _ string) []string { return []string{"ckpt", "verify", dir} }},
		{checkpoint + "/model.safetensors", w.path("run"),
			func(dir, _ string) []string { return []string{"ckpt", "verify", dir} }},
	} {
		for what, place := range filetest.NotFiles(t, "x") {
			if c.name == "metrics.jsonl" && what == "64 GiB" {
				continue // they may have any size
			}
			dir := t.TempDir()
			if c.from != "" {
				if err := os.CopyFS(dir, os.DirFS(c.from)); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, filepath.FromSlash(c.name))
			os.Remove(path)
			if err := os.Rename(place, path); err != nil {
				t.Fatal(err)
			}
			args := c.args(dir, path)
			what = strings.Join(args, " ") + ", with " + what
			filetest.Refused(t, what, func() error {
				code, _, errs := anneal(args...)
				if code == exitInternal || code != exitOK && !strings.Contains(errs, filepath.Base(path)) {
					t.Errorf("%s: exit %d\n%s", what, code, errs)
				}
				if code != exitOK {
					return errors.New(errs)
				}
				return nil
			})
		}
	}
}

// only returns the path, with slashes and relative to the parent of dir, of the first entry of dir whose name begins
// with begin.
func only(t *testing.T, dir, begin string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, begin+"*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has no %s: %v", dir, begin, err)
	}
	return filepath.Base(dir) + "/" + filepath.Base(found[0])
}
