package use

import (
	"math"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/run"
	"anneal/train/traintest"
)

// An exported run has its adapters merged: the model that comes back has the logits of the run. So does a run that
// is written afterwards.
func TestExportMergesAdapters(t *testing.T) {
	for _, dora := range []string{"false", "true"} {
		t.Run("dora="+dora, func(t *testing.T) { testExportMerges(t, dora) })
	}
}

// adaptedRun trains a model, and adapters for it.
func adaptedRun(t *testing.T, set ...string) (from, dir string) {
	t.Helper()
	data := traintest.Data(t)
	from = filepath.Join(t.TempDir(), "from")
	base := traintest.Config(data)
	base.Model.RopeLayout = "interleaved" // rows of queries and keys have another order in transformers
	mustRun(t, run.Options{Config: base, Dir: from})
	return from, adapt(t, from, data, set...)
}

// adapt trains adapters for a model.
func adapt(t *testing.T, from, data string, set ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	cfg, err := run.LoadConfig(config.Sources{Overrides: append([]string{
		"init.from=" + from, "data.path=" + data, "precision=fp32", "model.lora_rank=2", "optimizer.lr=0.3",
		"train.steps=20", "schedule.warmup=2", "train.batch_tokens=256", "train.eval_every=0", "train.eval_tokens=512",
	}, set...)})
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	return dir
}

func testExportMerges(t *testing.T, dora string) {
	from, dir := adaptedRun(t, "model.lora_dora="+dora)
	probe := func(r *Trained) []float64 {
		logits, err := r.Model.Probe(r.Policy, r.dev, []int32{3, 1, 4, 1, 5, 9, 2, 6}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return logits
	}
	open := func(dir string) *Trained {
		r, err := Open(dir, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}
	tuned, out, back := open(dir), filepath.Join(t.TempDir(), "hf"), filepath.Join(t.TempDir(), "back")
	want, base := probe(tuned), probe(open(from))
	if _, err := tuned.ExportHF(out, "F32"); err != nil {
		t.Fatal(err)
	}
	if _, err := run.ImportHF(out, back, ""); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(t.TempDir(), "written")
	if _, err := tuned.WriteAs(written, "test"); err != nil {
		t.Fatal(err)
	}
	for _, merged := range []*Trained{open(back), open(written)} {
		for i, z := range probe(merged) {
			if math.Abs(z-want[i]) > 1e-4 || math.Abs(want[i]-base[i]) < 1e-4 && i%50 == 0 {
				t.Errorf("logit %d is %v in %s, %v in the run, and was %v before", i, z, merged.Path(), want[i],
					base[i])
			}
		}
	}
}
