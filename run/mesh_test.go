package run

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/internal/filetest"
	"anneal/train"
	"anneal/train/traintest"
)

// meshConfig is a small run in FP64 that eight ranks can share in any way.
func meshConfig(t *testing.T, data string, overrides ...string) *config.Config {
	cfg := smallConfig(t, data, append([]string{
		"precision=fp64", "model.layers=8", "model.dim=32", "model.heads=8", "model.kv_heads=2", "model.ffn=32",
		"train.batch_tokens=256", "train.steps=8", "train.eval_every=8", "checkpoint.every=3", "checkpoint.keep=9",
	}, overrides...)...)
	return cfg
}

// stopped makes a run in dir that its caller stops after a step.
func stopped(t *testing.T, cfg *config.Config, dir string, after int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := Run(ctx, Options{Config: cfg, Dir: dir, Threads: 8, OnProgress: func(e train.Event) {
		if e.Step == after {
			cancel()
		}
	}})
	if err != nil || !r.Interrupted {
		t.Fatalf("%+v, %v; want an interrupted run", r, err)
	}
}

// A checkpoint of a mesh of ranks is continued on any other with the losses of a run that was never stopped. Each of
// the two recipes moves to every second mesh.
func TestResumeOnAnotherMesh(t *testing.T) {
	data := traintest.Data(t)
	for half, overrides := range [][]string{
		{"average.ema=0.9"},
		{"model.tie_embeddings=true", "parallel.zero=2", "optimizer.name=lion"},
	} {
		whole, first := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "run")
		mustRun(t, Options{Config: meshConfig(t, data, overrides...), Dir: whole, Threads: 8})
		want := readMetrics(t, whole)
		stopped(t, meshConfig(t, data, append([]string{
			"parallel.ranks=8", "parallel.tensor=2", "parallel.pipeline=2",
		}, overrides...)...), first, 3)
		for k, mesh := range []string{
			"tensor=1 pipeline=1 ranks=1", "tensor=8 pipeline=1", "tensor=1 pipeline=2 zero=1", "tensor=1 pipeline=8",
			"tensor=2 context=2 attention=ulysses", "tensor=1 pipeline=1 context=4", "ranks=4 sequence=false",
			"tensor=1 pipeline=4 schedule=interleaved:2",
		} {
			if k%2 != half {
				continue
			}
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
				t.Fatal(err)
			}
			keys := strings.Fields("parallel." + strings.ReplaceAll(mesh, " ", " parallel."))
			if _, err := Resume(context.Background(), Options{Dir: dir, Threads: 8, Overrides: keys}); err != nil {
				t.Fatalf("%s: %v", mesh, err)
			}
			got := readMetrics(t, dir)
			if len(got) != len(want) {
				t.Fatalf("%s: %d steps, want %d", mesh, len(got), len(want))
			}
			for i := range want {
				for _, key := range []string{"loss", "grad_norm"} {
					a, b := got[i][key].(float64), want[i][key].(float64)
					if math.Abs(a-b) > 1e-10*math.Abs(b) {
						t.Errorf("%s: %s of step %d is %v, want %v", mesh, key, i+1, a, b)
					}
				}
			}
			if v, err := Verify(dir); err != nil || len(v.Remarks) > 0 {
				t.Errorf("%s: %+v, %v", mesh, v, err)
			}
		}
	}
}

// What a resume changes of the mesh stays in the run's configuration, with the ranks that follow from it; what it means
// for the bits is said first.
func TestAMoveIsSaidAndKept(t *testing.T) {
	data, first := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	stopped(t, meshConfig(t, data, "parallel.pipeline=2", "model.tie_embeddings=true"), first, 2)
	for _, c := range []struct{ keys, mesh, says string }{
		{"parallel.schedule=gpipe", "2 ranks: tensor 1 · context 1 · pipeline 2 · data 1", "no bit"},
		{"parallel.pipeline=4", "4 ranks: tensor 1 · context 1 · pipeline 4 · data 1", "no bit"},
		{"parallel.ranks=4 parallel.zero=1", "4 ranks: tensor 1 · context 1 · pipeline 2 · data 2", "no bit"},
		{"parallel.pipeline=1", "1 rank", "another order (parallel.pipeline)"},
		{"parallel.tensor=2 parallel.pipeline=1", "2 ranks: tensor 2 · context 1 · pipeline 1 · data 1",
			"another order (parallel.tensor, parallel.pipeline)"},
		{"parallel.context=2", "4 ranks: tensor 1 · context 2 · pipeline 2 · data 1",
			"another order (parallel.context)"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		keys := strings.Fields(c.keys)
		cfg, err := ResumeConfig(dir, keys)
		if err != nil {
			t.Fatalf("%s: %v", c.keys, err)
		}
		text := strings.Join(cfg.Remarks(), "\n")
		if cfg.Parallel.String() != c.mesh || !strings.Contains(text, c.says) {
			t.Errorf("%s: %v, and %q; want %s, and %q", c.keys, cfg.Parallel, text, c.mesh, c.says)
		}
		var s said
		if _, err := Resume(context.Background(), Options{
			Dir: dir, Threads: 8, Overrides: keys, Warn: s.warn,
		}); err != nil || s.all() != "" {
			t.Fatalf("%s: %v, and warnings %q", c.keys, err, s.all())
		}
		if kept, err := Config(dir); err != nil || kept.Parallel.String() != c.mesh {
			t.Errorf("%s: the run is then on %v, %v; want %s", c.keys, kept.Parallel, err, c.mesh)
		}
	}
	for _, keys := range []string{"parallel.wire=bf16", "parallel.tensor=3", "parallel.pipeline=9",
		"parallel.schedule=interleaved:9", "parallel.schedule=2f2b"} {
		if _, err := ResumeConfig(first, []string{keys}); err == nil {
			t.Errorf("%s was accepted", keys)
		}
	}
}

// A resume that ends an axis needs no key for how ranks shared it: that has its default again.
func TestAMoveEndsAnAxisWithItsKey(t *testing.T) {
	data := traintest.Data(t)
	for _, c := range []struct{ first, keys, again string }{
		{"parallel.pipeline=2 parallel.schedule=interleaved:2", "parallel.pipeline=1", "parallel.pipeline=2"},
		{"parallel.context=2 parallel.attention=ulysses", "parallel.context=1", "parallel.context=2"},
		{"parallel.tensor=2 parallel.sequence=false", "parallel.tensor=1", "parallel.tensor=2"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		stopped(t, meshConfig(t, data, strings.Fields(c.first)...), dir, 2)
		keys := []string{c.keys}
		if _, err := Resume(context.Background(), Options{Dir: dir, Threads: 8, Overrides: keys}); err != nil {
			t.Fatalf("%s, then %s: %v", c.first, c.keys, err)
		}
		usual := config.Default().Parallel
		for _, keys := range [][]string{nil, {c.again, "parallel.ranks=2"}} {
			cfg, err := ResumeConfig(dir, keys)
			if err != nil {
				t.Fatalf("%s, then %s and %v: %v", c.first, c.keys, keys, err)
			}
			p := cfg.Parallel
			if p.Schedule != usual.Schedule || p.Attention != usual.Attention || p.Sequence != usual.Sequence {
				t.Errorf("%s, then %s and %v: %+v", c.first, c.keys, keys, p)
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "run")
	stopped(t, meshConfig(t, data, "parallel.pipeline=2"), dir, 2)
	if _, err := ResumeConfig(dir, []string{"parallel.pipeline=1", "parallel.schedule=gpipe"}); err == nil {
		t.Error("a schedule without a pipeline was accepted")
	}
}

// What formats and optimizers keep beside weights (scales of FP8, the loss scale, 8-bit moments, Muon's momentum,
// averages) is saved on one mesh and continued on others. What a mesh cannot hold is refused by name, and the run stays
// as it was.
func TestFormatsOnAnotherMesh(t *testing.T) {
	data := traintest.Data(t)
	for _, c := range []struct {
		recipe, first, others, refused string
		within                         float64 // of the losses of one rank
	}{
		{"precision=fp8 fp8.scaling=delayed fp8.history=2", "tensor=2 pipeline=2", "ranks=1 tensor=1 pipeline=1", "",
			2e-3},
		{"precision=fp16 average.ema=0.9", "tensor=2 pipeline=2 zero=1 ranks=8", "tensor=1 context=2 ranks=4", "",
			2e-3},
		{"precision=fp64 optimizer.name=muon average.ema=0.9", "tensor=2 context=2", "tensor=1 pipeline=2", "", 1e-10},
		{"precision=fp64 optimizer.name=adam8bit", "pipeline=2 ranks=4 zero=2", "context=2 ranks=4", "tensor=2", 1e-10},
		{"precision=fp64 optimizer.name=sophia", "pipeline=2", "pipeline=4", "context=2", 1e-10},
	} {
		keys := func(mesh string) []string {
			return strings.Fields("parallel." + strings.ReplaceAll(mesh, " ", " parallel."))
		}
		recipe := strings.Fields(c.recipe)
		whole, dir := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "run")
		mustRun(t, Options{Config: meshConfig(t, data, recipe...), Dir: whole, Threads: 8})
		want := readMetrics(t, whole)
		stopped(t, meshConfig(t, data, append(keys(c.first), recipe...)...), dir, 3)
		if c.refused != "" {
			before := filetest.Contents(t, dir, "")
			_, err := Resume(context.Background(), Options{Dir: dir, Threads: 8, Overrides: keys(c.refused)})
			if err == nil || !strings.Contains(err.Error(), "optimizer") {
				t.Errorf("%s on %s: %v, want an error about the optimizer", c.recipe, c.refused, err)
			}
			if !maps.Equal(before, filetest.Contents(t, dir, "")) {
				t.Errorf("%s on %s: what was refused has changed the run", c.recipe, c.refused)
			}
		}
		others := Options{Dir: dir, Threads: 8, Overrides: keys(c.others)}
		if _, err := Resume(context.Background(), others); err != nil {
			t.Fatalf("%s on %s: %v", c.recipe, c.others, err)
		}
		got := readMetrics(t, dir)
		if len(got) != len(want) {
			t.Fatalf("%s on %s: %d steps, want %d", c.recipe, c.others, len(got), len(want))
		}
		for i := range want {
			a, b := got[i]["loss"].(float64), want[i]["loss"].(float64)
			if !(math.Abs(a-b) <= c.within*math.Abs(b)) {
				t.Errorf("%s on %s: the loss of step %d is %v, want %v", c.recipe, c.others, i+1, a, b)
			}
		}
		if v, err := Verify(dir); err != nil || len(v.Remarks) > 0 {
			t.Errorf("%s on %s: %+v, %v", c.recipe, c.others, v, err)
		}
	}
}

// The example of `anneal resume --help` works for a run that never had a mesh: its number of ranks follows.
func TestResumeOfOneRankOnAMesh(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	stopped(t, meshConfig(t, data), dir, 3)
	o := Options{Dir: dir, Threads: 4, Overrides: []string{"parallel.tensor=2", "parallel.pipeline=2"}}
	if r, err := Resume(context.Background(), o); err != nil || r.Step != 8 {
		t.Fatalf("%+v, %v", r, err)
	}
	if p := mustLoad(t, dir).Parallel; p.Ranks != 4 {
		t.Errorf("it continues on %v, want 4 ranks", p)
	}
}
