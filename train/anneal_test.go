package train

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"anneal/train/config"
)

func annealConfig(data string) *config.Config {
	cfg := tinyConfig(data)
	cfg.Model.Family, cfg.Model.FFN = "anneal", 0
	cfg.Resolve()
	cfg.Train.MicroBatch, cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.EvalEvery = 2, 6, 1, 0
	return cfg
}

// A run of the recipe resumes bit for bit, on other threads and with layers that run again, too; its model generates, and its
// export is refused by the field that no format has.
func TestAnnealRunsResumeGenerateAndAreNotExported(t *testing.T) {
	data := testData(t)
	want := mustRun(t, Options{Config: annealConfig(data), Dir: filepath.Join(t.TempDir(), "run")})
	dir, cfg := filepath.Join(t.TempDir(), "run"), annealConfig(data)
	cfg.Threads, cfg.Memory.Recompute = 1, "every_layer"
	r, err := Run(&countdown{context.Background(), 3*cfg.Train.BatchTokens/(2*cfg.Model.Context) + 1}, Options{Config: cfg, Dir: dir})
	if err != nil || !r.Interrupted || r.Step != 3 {
		t.Fatalf("interrupted %v at step %d, %v; want in the fourth step", r.Interrupted, r.Step, err)
	}
	if r, err = Resume(context.Background(), Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if r.WeightsHash != want.WeightsHash || r.OptimizerHash != want.OptimizerHash || r.ValLoss != want.ValLoss {
		t.Errorf("resumed: weights %.12s, validation %v; want %.12s, %v", r.WeightsHash, r.ValLoss, want.WeightsHash, want.ValLoss)
	}
	trained, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer trained.Close()
	if c := trained.Model.Config; c.Family != "anneal" || !c.X0Skip || !c.QKNorm || c.Activation != "relu2" || c.ValueEmbeddings != "alternate" || c.ZeroInit != "residual" {
		t.Errorf("the trained model is %+v", c)
	}
	if n, _, err := generate(trained, GenerateOptions{Prompt: "the", MaxTokens: 3}); n != 3 || err != nil {
		t.Errorf("generated %d tokens, %v; want 3", n, err)
	}
	trained.Model.Config.LogitSoftcap = 0
	for _, field := range []string{"activation", "value_embeddings", "x0_skip"} {
		_, err := trained.ExportHF(t.TempDir(), "F32")
		if err == nil || !strings.Contains(err.Error(), "model."+field+" = ") {
			t.Errorf("export with model.%s: %v", field, err)
		}
		switch c := &trained.Model.Config; field {
		case "activation":
			c.Activation = "swiglu"
		case "value_embeddings":
			c.ValueEmbeddings = "none"
		}
	}
}
