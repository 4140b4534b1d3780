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
