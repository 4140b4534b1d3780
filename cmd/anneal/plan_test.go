package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The picture of a mesh has every part of every stage's memory; that of a search has a point for each of the best.
func TestPlansAreDrawn(t *testing.T) {
	dir := t.TempDir()
	memory, front := filepath.Join(dir, "memory.svg"), filepath.Join(dir, "front.svg")
	draw := func(file, args string) string {
		t.Helper()
		if code, _, errs := anneal(append(strings.Fields(args), "--svg", file)...); code != exitOK {
			t.Fatalf("anneal %s: exit %d, %s", args, code, errs)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := draw(memory, "plan --recipe llama2-70b --on 4x8xh100-80gb --mesh tp=4,pp=4,vpp=2 --batch 16")
	for _, want := range []string{"stage 0", "stage 3", "activations", "85.2 GB", "76.0 GB of a device"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture of memory has no %q", want)
		}
	}
	if got := strings.Count(text, memoryParts[3].colour); got != 5 {
		t.Errorf("the picture has %d times the colour of activations, want 4 stages and the legend", got)
	}
	text = draw(front, "plan --recipe llama2-7b --on 8x8xh100-80gb --search")
	for _, want := range []string{"the best meshes", "device hours", "% of memory free"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture of the front has no %q", want)
		}
	}
}

func TestPicturesOfPlansNeedARecipe(t *testing.T) {
	code, _, errs := anneal("plan", "x.yaml", "--svg", filepath.Join(t.TempDir(), "x.svg"))
	if code != exitUsage || !strings.Contains(errs, "--svg and --timeline plan a recipe") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// Everything that is wrong is said at once, with the names that were meant.
func TestBadPlansAreRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		args string
		says []string
	}{
		{"--recipe llama2-70x --on 16x8xh100-80g --mesh dpp=3,tp=x,pp=2,pp=4 --precision bf61 --price abc --batch=-4",
			[]string{"did you mean llama2-70b?", "did you mean h100-80gb?", "did you mean dp?", `"tp=x"`, "pp twice",
				"did you mean bf16?", "--price abc", "--batch is -4"}},
		{"--recipe llama2-70b --on 16x8xh100-80gb --mesh dp=3,tp=5,pp=81 --zero 7 --tokens=-1 --within 3h",
			[]string{"1215 ranks", "tp=5 does not divide 64 heads", "zero=7", "--tokens is -1", "needs --search"}},
		{"--recipe llama2-70b --on 16x8xh100-80gb --search --mesh tp=8 --context=-1",
			[]string{"leave out --mesh", "--context is -1"}},
	} {
		code, _, errs := anneal(append([]string{"plan"}, strings.Fields(c.args)...)...)
		if code != exitUsage {
			t.Errorf("anneal plan %s: exit %d", c.args, code)
		}
		for _, want := range c.says {
			if !strings.Contains(errs, want) {
				t.Errorf("anneal plan %s does not say %q: %s", c.args, want, errs)
			}
		}
	}
}
