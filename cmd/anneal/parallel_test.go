package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The places of ranks, the layers of stages and the timeline of a step are shown as text, picture and JSON; an
// impossible mesh is a usage error.
func TestParallelShow(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "p.svg")
	tiny := []string{"parallel", "show", "../../examples/tiny.yaml", "data.path=", "model.vocab=8192"}
	mesh := append(tiny, "parallel.ranks=8", "parallel.pipeline=2", "parallel.tensor=2", "train.batch_tokens=4096",
		"train.micro_batch=2", "parallel.schedule=zb-h1", "parallel.sum_block=4")
	code, out, errs := anneal(append(mesh, "--svg", svg)...)
	for _, want := range []string{
		"8 ranks = 2 stages × 2 data × 1 context × 2 tensor",
		"\n   6      1     1        0       0\n", // ((1·2 + 1)·1 + 0)·2 + 0
		"embedding, 0–3", "4–5, head", "zb-h1, 2 stages, 4 micro-batches", "stage 1  ...F0", "W3",
	} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, without %q:\n%s%s", code, want, out, errs)
		}
	}
	if picture, err := os.ReadFile(svg); err != nil || !strings.HasPrefix(string(picture), "<svg") {
		t.Errorf("the picture is %.20q, %v", picture, err)
	}
	w := newWorkshop(t)
	v := w.object(exitOK, mesh...)
	w.keys(v, "data", "micro_batches", "stages", "idle_share", "chunks", "schedule", "step_time", "ranks")
	if n := len(v["ranks"].([]any)); n != 8 {
		t.Errorf("the JSON has %d ranks, want 8", n)
	}
	w.object(exitOK, tiny...) // alone
	for want, set := range map[string][]string{
		"\n1f1b, 2 stages, 1 micro-batch\n": {"parallel.pipeline=2", "train.batch_tokens=4096", "train.micro_batch=16"},
		"\nno pipeline, 2 micro-batches\n":  {"train.batch_tokens=4096", "train.micro_batch=8"},
	} {
		code, out, errs := anneal(append(slices.Clip(tiny), set...)...)
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, without %q:\n%s%s", code, want, out, errs)
		}
	}
	for _, bad := range []string{"parallel.pipeline=7", "parallel.schedule=2f2b", "parallel.schedule=interleaved:4",
		"parallel.pipeline=3"} {
		w.object(exitUsage, append(mesh, bad)...)
	}
}

// The examples of the help work with data, whatever its vocabulary, and without.
func TestExamplesOfParallelShowRun(t *testing.T) {
	w := newWorkshop(t)
	tiny, err := os.ReadFile("../../examples/tiny.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(w.dir)
	if err := errors.Join(os.MkdirAll("examples", 0o777), os.WriteFile("examples/tiny.yaml", tiny, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, data := range []bool{false, true} {
		if data {
			err := errors.Join(os.Rename("data", "go"), os.Mkdir("data", 0o777), os.Rename("go", "data/go"))
			if err != nil {
				t.Fatal(err)
			}
		}
		_, help, _ := anneal("parallel", "show", "--help")
		help = strings.ReplaceAll(help, "\\\n", "") // a long line goes on in the next
		lines := regexp.MustCompile(`(?m)^ +anneal (parallel show examples.*)$`).FindAllStringSubmatch(help, -1)
		for _, line := range lines {
			if code, _, errs := anneal(strings.Fields(line[1])...); code != exitOK {
				t.Errorf("with data %v, %s: exit %d\n%s", data, line[1], code, errs)
			}
		}
		if len(lines) < 3 {
			t.Errorf("%d examples in\n%s", len(lines), help)
		}
	}
}
