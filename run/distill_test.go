package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/tokenizer"
	"anneal/train/traintest"
)

// A run that learns from another comes nearer to it than one that does not: the divergence falls. It has the same bits
// on any threads and ranks, after a stop, and with another path to the same teacher. Its memory is what was planned.
func TestARunLearnsFromATeacher(t *testing.T) {
	data := traintest.Data(t)
	teacher, _ := trainedRun(t, data, "train.steps=40", "model.dim=48", "model.heads=3", "optimizer.lr=1e-2")
	with := func(more ...string) *config.Config {
		t.Helper()
		cfg, err := LoadConfig(config.Sources{Overrides: append([]string{
			"data.path=" + data, "model.layers=2", "model.dim=32", "model.heads=2", "model.ffn=64", "model.context=32",
			"train.steps=12", "schedule.warmup=2", "train.batch_tokens=256", "train.micro_batch=2",
			"train.eval_every=0", "train.eval_tokens=512", "checkpoint.every=4", "checkpoint.keep=10",
			"optimizer.lr=1e-2", "distill.teacher=" + teacher, "distill.temperature=2", "distill.weight=0.9",
			"distill.top_k=20", "guard.replay_every=3",
		}, more...)})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	dir := filepath.Join(t.TempDir(), "run")
	want := mustRun(t, Options{Config: with(), Dir: dir, Threads: 2})
	lines := readMetrics(t, dir)
	first, last := lines[0]["teacher_kl"].(float64), lines[len(lines)-1]["teacher_kl"].(float64)
	if !(last < 0.8*first) {
		t.Errorf("the divergence from the teacher was %v and is %v", first, last)
	}
	for _, a := range want.Arenas {
		if a.Bytes != a.Peak {
			t.Errorf("%s: %d bytes of %d are used", a.Name, a.Peak, a.Bytes)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if err != nil || !strings.Contains(string(text), "hash: ") || !strings.Contains(string(text), "step: 40") {
		t.Errorf("config.yaml does not name the teacher's weights: %v\n%s", err, text)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.CopyFS(moved, os.DirFS(teacher)); err != nil {
		t.Fatal(err)
	}
	ranks := filepath.Join(t.TempDir(), "run")
	for name, got := range map[string]*Result{
		"on one thread": mustRun(t, Options{Config: with(), Dir: filepath.Join(t.TempDir(), "run"), Threads: 1}),
		"resumed":       resumedAt(t, dir, 4),
		"on two ranks": mustRun(t, Options{
			Config: with("parallel.ranks=2", "guard.replay_every=0"), Dir: ranks, Threads: 2,
		}),
		"of a copy": mustRun(t, Options{
			Config: with("distill.teacher=" + moved), Dir: filepath.Join(t.TempDir(), "run"),
		}),
	} {
		if got.WeightsHash != want.WeightsHash {
			t.Errorf("%s the weights are %.12s, want %.12s", name, got.WeightsHash, want.WeightsHash)
		}
	}
	for i, line := range readMetrics(t, ranks) {
		if line["teacher_kl"] != lines[i]["teacher_kl"] {
			t.Errorf("step %d: the divergence is %v, on two ranks %v", i+1, lines[i]["teacher_kl"], line["teacher_kl"])
		}
	}
	alone := mustRun(t, Options{
		Config: with("distill.weight=1e-9"), Dir: filepath.Join(t.TempDir(), "run"),
	})
	if alone.WeightsHash == want.WeightsHash {
		t.Error("the weight of the teacher's term changes nothing")
	}
}

// The forward pass of a teacher far larger than the model fits into the memory that was planned.
func TestALargeTeacherFits(t *testing.T) {
	data := traintest.Data(t)
	teacher, _ := trainedRun(t, data, "train.steps=1", "model.dim=384", "model.layers=1", "model.ffn=2048")
	cfg := smallConfig(t, data, "distill.teacher="+teacher, "model.layers=1", "model.ffn=32")
	if err := takeTeacher(cfg); err != nil {
		t.Fatal(err)
	}
	r := mustRun(t, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
	for _, a := range r.Arenas {
		if a.Bytes != a.Peak {
			t.Errorf("%s: %d bytes of %d are used", a.Name, a.Peak, a.Bytes)
		}
	}
}

// What is no teacher is said, with the key.
func TestWhatIsNoTeacher(t *testing.T) {
	data := traintest.Data(t)
	teacher, _ := trainedRun(t, data)
	other := traintest.DataWith(t, 0.1, tokenizer.TrainOptions{VocabSize: 300})
	elsewhere, _ := trainedRun(t, other)
	for _, c := range []struct{ set, want string }{
		{"distill.teacher=" + filepath.Join(t.TempDir(), "none"), "distill.teacher"},
		{"distill.teacher=" + t.TempDir(), "neither a run"},
		{"distill.teacher=" + elsewhere, "vocabulary"},
		{"distill.step=3 distill.teacher=" + teacher, "step"},
		{"distill.top_k=5000 distill.teacher=" + teacher, "distill.top_k = 5000"},
		{"distill.hash=abc distill.teacher=" + teacher, "distill.hash = abc"},
		{"model.context=64 distill.teacher=" + teacher, "tokens at most"},
	} {
		cfg, err := LoadConfig(config.Sources{Overrides: append([]string{
			"data.path=" + data, "model.layers=1", "model.dim=32", "model.heads=2", "model.context=32",
			"train.steps=2", "train.batch_tokens=256", "train.micro_batch=2",
		}, strings.Fields(c.set)...)})
		if err == nil {
			_, err = Run(context.Background(), Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", c.set, err, c.want)
		}
		var problem config.Problem
		if errors.As(err, &problem) && (problem.Try == "" || problem.Key == "") {
			t.Errorf("%s: %+v", c.set, problem)
		}
	}
}

// Another teacher than the one with which a run began is refused when it is resumed.
func TestARunKeepsItsTeacher(t *testing.T) {
	data := traintest.Data(t)
	teacher, _ := trainedRun(t, data, "train.steps=6")
	dir := filepath.Join(t.TempDir(), "run")
	cfg := smallConfig(t, data, "distill.teacher="+teacher)
	if err := takeTeacher(cfg); err != nil {
		t.Fatal(err)
	}
	mustRun(t, Options{Config: cfg, Dir: dir})
	another, _ := trainedRun(t, data, "train.steps=6", "seed=9")
	_, err := Resume(context.Background(), Options{Dir: dir, Overrides: []string{
		"distill.teacher=" + another, fmt.Sprintf("distill.hash=%s", cfg.Distill.Hash),
	}})
	if err == nil || !strings.Contains(err.Error(), "distill.hash") {
		t.Errorf("resumed with another teacher: %v", err)
	}
}
