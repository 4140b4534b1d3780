package study

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/internal/torture"
)

// A few steps are enough to see that every model starts from the first task, and that its curve has its end.
func TestForgettingStartsFromTheFirstTask(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "forgetting"), "forgetting", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, list, err := Forget(t.Context(), d, ForgettingOptions{Seed: 1, Steps: 20, TextSteps: 5})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range list.Tasks {
		if f.by != remedies[i] || f.Before != list.Tasks[0].Before || len(f.First) != 10 || f.After != f.First[9] ||
			math.IsNaN(f.Second) {
			t.Errorf("%+v", f)
		}
	}
	for i, f := range list.Texts {
		if f.Replay != driftReplays[i] || f.Before != list.Texts[0].Before || len(f.Code) != driftLooks ||
			f.After != f.Code[driftLooks-1] || f.Prose[1] >= f.Prose[0] {
			t.Errorf("%+v", f)
		}
	}
	if len(list.Texts) != len(driftReplays) {
		t.Errorf("%d models of text", len(list.Texts))
	}
}

// The accept bands: without replay the first task is gone, with 5 % most of it stays; code is forgotten for prose, and
// a quarter of code among it keeps most.
func TestForgettingAtFullSize(t *testing.T) {
	torture.Long(t)
	d, err := Open(filepath.Join(t.TempDir(), "forgetting"), "forgetting", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, found, err := Forget(t.Context(), d, ForgettingOptions{Seed: 1, Steps: 1500, TextSteps: 500})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found.Tasks {
		if f.Before < 0.95 || f.EWC == 0 && f.Second < 0.95 || f.Remedy == "0 % replayed" && f.After > 0.1 ||
			f.Replay >= 0.05 && f.After < 0.9 {
			t.Errorf("%+v", f)
		}
	}
	none, quarter := found.Texts[0], found.Texts[2]
	if lost := none.After - none.Before; lost < 0.2 || quarter.After-quarter.Before > lost/4 {
		t.Errorf("code costs %.3f bits per byte more after prose alone, and %.3f with a quarter of code among it", lost,
			quarter.After-quarter.Before)
	}
}

// Code and comments part; directives and the notice of copyright are in neither text.
func TestGoFilesAreSplit(t *testing.T) {
	code, comments := splitGo("// Copyright the authors.\n// in the LICENSE file.\n\n//go:build linux\n\n" +
		"// Package a\n// is one.\npackage a\n\n\t// f returns 1.\nfunc f() int { return 1 } // one\n")
	if code != "\n\npackage a\n\nfunc f() int { return 1 } // one\n" ||
		comments != "Package a\nis one.\nf returns 1.\n" {
		t.Errorf("%q\n%q", code, comments)
	}
}

func TestDriftSaysWhatItSaw(t *testing.T) {
	list := []Drift{{Before: 2, After: 3, Prose: [2]float64{3, 2}}, {Replay: 0.05, Before: 2, After: 2.3},
		{Replay: 0.25, Before: 2, After: 2.1, Prose: [2]float64{3, 2.05}}}
	if text := driftSeen(list); !strings.Contains(text, "So 25 % of old text are enough") ||
		!strings.Contains(text, "for 0.050 bits per byte of the new") {
		t.Error(text)
	}
	if text := driftSeen(list[:2]); strings.Contains(text, "enough") {
		t.Error(text)
	}
}

func TestForgettingSaysWhatItSaw(t *testing.T) {
	list := []Forgetting{{Before: 1, After: 0.01, Second: 1, First: []float64{0.2, 0.01}},
		{Replay: 0.01, Before: 1, After: 0.4, Second: 1}, {Replay: 0.05, Before: 1, After: 0.96, Second: 1}}
	if text := forgettingSeen(list); !strings.Contains(text, "So 5 % of old examples are enough") {
		t.Error(text)
	}
	if text := forgettingSeen(list[:2]); strings.Contains(text, "enough") || strings.Contains(text, "EWC") {
		t.Error(text)
	}
	list = append(list, Forgetting{EWC: 1, Before: 1, After: 0.05, Second: 1})
	if text := forgettingSeen(list); !strings.Contains(text, "EWC alone keeps nothing") {
		t.Error(text)
	}
	list[len(list)-1].After = 0.3
	if text := forgettingSeen(list); strings.Contains(text, "EWC alone") {
		t.Error(text)
	}
}
