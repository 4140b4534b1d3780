package use

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/run"
	"anneal/train/traintest"
)

// edit changes the configuration that a run has on disk.
func edit(t *testing.T, dir string, overrides ...string) {
	t.Helper()
	cfg, err := config.Load(filepath.Join(dir, "config.yaml"), overrides)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n") // it names the run
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), append([]byte(first+"\n"), cfg.YAML()...),
		0o666); err != nil {
		t.Fatal(err)
	}
}

// A configuration that no longer fits the checkpoint is refused; one that only asks for more goes on.
func TestResumeWithAChangedConfiguration(t *testing.T) {
	data, other := traintest.Data(t), t.TempDir()
	cfg := traintest.Config(data)
	cfg.Train.Steps, cfg.Schedule.Warmup = 10, 1
	first := filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{Config: cfg, Dir: first})
	if err := os.CopyFS(other, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		set  []string
		want string // in the error; "" where the run goes on
	}{
		{"another shape", []string{"model.ffn=64"}, "model.ffn = 64, but the weights were trained with"},
		{"another activation", []string{"model.family=anneal", "model.activation=swiglu", "model.qk_norm=false"},
			"model.family"},
		{"norms of queries and keys", []string{"model.qk_norm=true"}, "model.qk_norm = true"},
		{"another number format", []string{"precision=fp64"}, "another model"},
		{"other heads of the same total", []string{"model.heads=4", "model.kv_heads=4", "model.head_dim=8"},
			"trained with 2"},
		{"other wavelengths", []string{"model.rope_theta=500000"}, "model.rope_theta"},
		{"another seed", []string{"seed=2"}, "seed 2"},
		{"another context", []string{"model.context=16"}, "context 16"},
		{"dropout", []string{"model.dropout=0.1", "train.steps=11"}, ""},
		{"another packing", []string{"data.packing=best_fit"}, "data.packing"},
		{"data that moved", []string{"data.path=" + other}, ""},
		{"more steps at another rate", []string{"optimizer.lr=1e-4", "train.steps=12"}, ""},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		edit(t, dir, c.set...)
		r, err := run.Resume(context.Background(), run.Options{Dir: dir})
		switch {
		case c.want != "":
			if strings.Contains(c.want, "model.") {
				if r, err := Open(dir, 1); err == nil {
					r.Close()
					t.Errorf("%s: weights that mean something else were opened", c.name)
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v does not say %q", c.name, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		default:
			now, err := run.Config(dir)
			if err != nil || r.Step != now.Train.Steps {
				t.Errorf("%s: ended at step %d of %d, %v", c.name, r.Step, now.Train.Steps, err)
			}
		}
	}
}

// A tokenizer other than the run's would give text that means nothing: it is refused where it would be used.
func TestAnotherTokenizerInARunIsRefused(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	cfg.Train.Steps, cfg.Schedule.Warmup = 1, 1
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	path := filepath.Join(dir, "tokenizer.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), "endoftext", "endoftexts")
	if err := os.WriteFile(path, []byte(changed), 0o666); err != nil {
		t.Fatal(err)
	}
	var data *dataset.Error
	r, err := Open(dir, 1)
	if err == nil {
		r.Close()
	}
	if !errors.As(err, &data) || !strings.Contains(err.Error(), "is not the file that step-00000001 was made with") {
		t.Errorf("opening a run with another tokenizer: %v", err)
	}
}

// countdown is a context that ends when it was asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// checkResume runs what make returns to its end, and again with layers that run again, on one thread and interrupted
// in the fourth step: both end with the same bits. It returns the directory of the resumed run.
func checkResume(t *testing.T, make func() *config.Config) string {
	t.Helper()
	want := mustRun(t, run.Options{Config: make(), Dir: filepath.Join(t.TempDir(), "run")})
	dir, cfg := filepath.Join(t.TempDir(), "run"), make()
	cfg.Threads, cfg.Memory.Recompute = 1, recomputing("every_layer")
	r, err := run.Run(&countdown{context.Background(),
		3*cfg.Train.BatchTokens/(cfg.Train.MicroBatch*cfg.Model.Context) + 1}, run.Options{Config: cfg, Dir: dir})
	if err != nil || !r.Interrupted || r.Step != 3 {
		t.Fatalf("interrupted %v at step %d, %v; want in the fourth step", r.Interrupted, r.Step, err)
	}
	if r, err = run.Resume(context.Background(), run.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if r.Step != want.Step || r.WeightsHash != want.WeightsHash || r.OptimizerHash != want.OptimizerHash ||
		r.ValLoss != want.ValLoss {
		t.Errorf("resumed: step %d, weights %.12s, validation %v; want %d, %.12s, %v",
			r.Step, r.WeightsHash, r.ValLoss, want.Step, want.WeightsHash, want.ValLoss)
	}
	return dir
}

// familyConfig is a run of six steps of a family.
func familyConfig(family, data string) *config.Config {
	cfg := traintest.Config(data)
	cfg.Model.Family, cfg.Model.FFN = family, 0
	cfg.Resolve()
	cfg.Train.MicroBatch, cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.EvalEvery = 2, 6, 1, 0
	return cfg
}
