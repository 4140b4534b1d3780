package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/dataset"
)

func TestConfigDiff(t *testing.T) {
	w := newWorkshop(t)
	code, out, errs := anneal("config", "diff", w.path("run.yaml"), "../../examples/tiny.yaml")
	if code != exitOK || !strings.Contains(out, "model.dim") || !strings.Contains(out, "tiny.yaml:") {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	if code, out, _ := anneal("config", "diff", w.path("run.yaml"), w.path("run.yaml")); code != exitOK ||
		out != "all values are the same\n" {
		t.Errorf("the same file: exit %d, %s", code, out)
	}
	if code, _, errs := anneal("config", "diff", w.path("run.yaml"), w.path("none")); code != exitUsage ||
		!strings.Contains(errs, "cannot read") {
		t.Errorf("a file that is not there: exit %d, %s", code, errs)
	}
	empty := t.TempDir()
	if code, _, errs := anneal("config", "diff", empty, empty); code != exitUsage && code != exitData ||
		!strings.Contains(errs, "is not a run") {
		t.Errorf("a directory that is no run: exit %d, %s", code, errs)
	}
}

// A run's archive lists its contents, and contains none of the training text.
func TestDebugOfARun(t *testing.T) {
	w := newWorkshop(t)
	w.object(exitOK, "train", w.path("run.yaml"), "train.steps=2", "--out", w.path("run"))
	file := filepath.Join(t.TempDir(), "d.tar.gz")
	code, out, errs := anneal("debug", w.path("run"), "--out", file)
	info, err := os.Stat(file)
	if code != exitOK || err != nil || info.Size() == 0 || !strings.Contains(out, "config.yaml") ||
		!strings.Contains(out, "machine.json") || strings.Contains(out, "tokenizer.json") {
		t.Errorf("exit %d, %v, %s\n%s", code, err, errs, out)
	}
	if err := os.Rename(w.path("run"), w.path("run a")); err != nil {
		t.Fatal(err)
	}
	_, out, errs = anneal("debug", w.path("run a"), "--out", file)
	if !strings.Contains(out, "'anneal-debug-run a/config.yaml'   # look") {
		t.Errorf("the next command is not for a shell: %s%s", out, errs)
	}
	if code, _, errs := anneal("debug", w.path("nothing")); code == exitOK || !strings.Contains(errs, "is not a run") {
		t.Errorf("no run: exit %d, %s", code, errs)
	}
}

// init writes a config that trains unchanged with the command that init prints, on data made from text; it never
// replaces a config.
func TestInitWritesAConfigThatTrains(t *testing.T) {
	w := newWorkshop(t)
	t.Chdir(t.TempDir())
	dir := filepath.Join("runs", "new")
	w.object(exitOK, "init", dir, "--data", w.path("text"), "--vocab", "300", "--budget", "20s", "--threads", "1")
	text, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if err != nil || !strings.Contains(string(text), "# ") || !strings.Contains(string(text), "path: data\n") ||
		!strings.Contains(string(text), "threads: 1\n") {
		t.Fatalf("%v\n%s", err, text)
	}
	d, err := dataset.Open(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	if share := d.Manifest.ValFraction; share != 0.1 {
		t.Errorf("of little text the share %v is held out, want a tenth", share)
	}
	d.Close()
	short := []string{"train.steps=2", "schedule.warmup=1"}
	_, named, _ := strings.Cut(string(text), "#   anneal ")
	named, _, _ = strings.Cut(named, "\n")
	w.object(exitOK, append(strings.Fields(named), short...)...)
	if code, _, errs := anneal("init", dir); code != exitUsage ||
		!strings.Contains(errs, "config.yaml: file already exists\n") {
		t.Errorf("a second init: exit %d, %s", code, errs)
	}
	if code, _, errs := anneal("init", "other", "--data", w.path("data"), "--vocab", "300"); code != exitUsage ||
		!strings.Contains(errs, w.path("data")+" is a data set") {
		t.Errorf("a vocabulary for a data set: exit %d, %s", code, errs)
	}
	if err := os.WriteFile("ten.txt", []byte("ten bytes."), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := anneal("init", "other", "--ext", ".md"); code != exitUsage ||
		!strings.Contains(errs, "--data") {
		t.Errorf("--ext without text gives exit code %d and %q", code, errs)
	}
	if code, _, errs := anneal("init", "short", "--data", "ten.txt"); code != exitData ||
		!strings.Contains(errs, "but one sample of context 256 takes 257") || strings.Contains(errs, "measuring") {
		t.Errorf("ten bytes of text: exit %d, %s", code, errs)
	}
}

// --quiet keeps results and errors.
func TestQuiet(t *testing.T) {
	w := newWorkshop(t)
	code, out, errs := anneal("train", w.path("run.yaml"), "train.steps=2", "--out", w.path("quiet"), "--quiet")
	if code != exitOK || strings.Contains(errs, "step ") || strings.Contains(errs, "anneal 0") ||
		!strings.Contains(out, "validation loss") {
		t.Errorf("exit %d, stderr %q\n%s", code, errs, out)
	}
	if code, _, errs := anneal("-q", "resume", w.path("none")); code == exitOK || !strings.Contains(errs, "error: ") {
		t.Errorf("an error: exit %d, %s", code, errs)
	}
}
