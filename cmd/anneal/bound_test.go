package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// copyOf copies a directory to a new one and returns it.
func (w workshop) copyOf(dir string) string {
	w.t.Helper()
	to := filepath.Join(w.t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		w.t.Fatal(err)
	}
	return to
}

// Every command refuses a truncated config.yaml, which it would otherwise complete with defaults.
func TestTruncatedConfigsAreRefused(t *testing.T) {
	w := newWorkshop(t)
	run := w.path("run")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", run)
	whole, err := os.ReadFile(filepath.Join(run, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	unsaved := w.copyOf(run) // a run without a checkpoint: a resume would start at step 0
	if err := os.RemoveAll(filepath.Join(unsaved, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(whole)-60; n += 97 {
		for _, dir := range []string{run, unsaved} {
			if err := os.WriteFile(filepath.Join(dir, "config.yaml"), whole[:n], 0o644); err != nil {
				t.Fatal(err)
			}
			if code, _, errs := anneal("resume", dir); code != exitUsage && code != exitData {
				t.Fatalf("%d of %d bytes of %s/config.yaml: exit %d\n%s", n, len(whole), dir, code, errs)
			}
		}
	}
	for _, args := range [][]string{
		{"generate", run}, {"eval", run, "--data", w.path("data")}, {"export", run, w.path("hf")},
		{"ckpt", "verify", run}, {"rewind", run, "--to", "10"},
		{"branch", run, "--at", "10", "--out", w.path("b"), "train.steps=25"},
		{"train", w.path("run.yaml"), "--init-from", run, "--out", w.path("c")},
	} {
		if code, _, errs := anneal(args...); code != exitUsage || !strings.Contains(errs, "truncated") {
			t.Errorf("anneal %s: exit %d\n%s", args, code, errs)
		}
	}
}

// A checkpoint that was copied from another run, and a config.yaml of another run, are refused by every command.
func TestCheckpointsOfAnotherRunAreRefused(t *testing.T) {
	w := newWorkshop(t)
	run, other := w.path("run"), w.path("other")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", run)
	w.object(exitOK, "train", w.path("run.yaml"), "--out", other, "seed=2", "train.steps=25")
	mixed, swapped := w.copyOf(run), w.copyOf(run)
	if err := os.CopyFS(filepath.Join(mixed, "checkpoints", "step-00000025"),
		os.DirFS(filepath.Join(other, "checkpoints", "step-00000025"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(other, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(swapped, "config.yaml"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{mixed, swapped} {
		for _, args := range [][]string{
			{"resume", dir}, {"generate", dir}, {"eval", dir, "--data", w.path("data")}, {"export", dir, w.path("hf")},
			{"ckpt", "verify", dir}, {"ckpt", "hash", dir},
			{"ckpt", "average", dir, "--last", "2", "--out", w.path("mean")}, {"rewind", dir, "--to", "10"},
			{"branch", dir, "--at", "20", "--out", w.path("b"), "train.steps=25"},
			{"train", w.path("run.yaml"), "--init-from", dir, "--out", w.path("c")},
		} {
			code, _, errs := anneal(args...)
			if code != exitCheckpoint || !strings.Contains(errs, "belongs to another run") {
				t.Errorf("anneal %s: exit %d\n%s", args, code, errs)
			}
			for _, made := range []string{"hf", "mean", "b", "c"} {
				if _, err := os.Stat(w.path(made)); err == nil {
					t.Fatalf("anneal %s left %s", args, made)
				}
			}
		}
	}
	if after := w.object(exitOK, "ckpt", "verify", run); len(after["remarks"].([]any)) != 0 {
		t.Errorf("remarks on a sound run: %v", after["remarks"])
	}
}

// Commands refuse a tokenizer that differs from the one used in training.
func TestChangedTokenizersAreRefused(t *testing.T) {
	w := newWorkshop(t)
	whole := w.path("run")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", whole)
	for _, file := range []string{"tokenizer.json", "tokenizer_config.json"} {
		run := w.copyOf(whole)
		flip(t, filepath.Join(run, file))
		for _, args := range [][]string{{"resume", run}, {"generate", run}, {"ckpt", "verify", run}} {
			if code, _, errs := anneal(args...); code != exitData || !strings.Contains(errs, file) {
				t.Errorf("%s changed, anneal %s: exit %d\n%s", file, args, code, errs)
			}
		}
	}
}

// Nothing in the directory of a run can change without verify saying so.
func TestVerifyCoversTheWholeDirectory(t *testing.T) {
	w := newWorkshop(t)
	whole := w.path("run")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", whole)
	w.object(exitOK, "rewind", whole, "--to", "15")
	sound := w.object(exitOK, "ckpt", "verify", whole)
	if n := len(sound["remarks"].([]any)); n != 0 {
		t.Fatalf("remarks on a sound run: %v", sound["remarks"])
	}
	var files []string
	err := filepath.WalkDir(whole, func(path string, d os.DirEntry, err error) error {
		unread := []string{".lock", "latest", "exit.json", "timing.json", "report.html"} // anneal does not read them
		rel, _ := filepath.Rel(whole, path)
		if err == nil && d.Type().IsRegular() && !slices.Contains(unread, d.Name()) {
			files = append(files, rel)
		}
		return err
	})
	if err != nil || len(files) < 15 || !slices.Contains(files, "metrics.jsonl") {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		run := w.copyOf(whole)
		// a changed digit is still valid JSON; only a line that is not JSON is noticed
		if file == "metrics.jsonl" || file == "journal.jsonl" {
			text, err := os.ReadFile(filepath.Join(run, file))
			if err == nil {
				text[strings.Index(string(text), "\n")+1] ^= 1
				err = os.WriteFile(filepath.Join(run, file), text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		} else {
			flip(t, filepath.Join(run, file))
		}
		code, out, errs := anneal("ckpt", "verify", run, "--json")
		if code == exitOK && strings.Contains(out, `"remarks":[]`) {
			t.Errorf("a flipped bit in %s was not noticed\n%s%s", file, out, errs)
		}
	}
	run := w.copyOf(whole)
	if err := os.WriteFile(filepath.Join(run, "notes.bin"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if v := w.object(exitOK, "ckpt", "verify", run); len(v["remarks"].([]any)) != 1 {
		t.Errorf("a file that is not the run's: remarks %v", v["remarks"])
	}
}
