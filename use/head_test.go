package use

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/model"
	"anneal/run"
	"anneal/train/traintest"
)

// A soft-cap is part of the model: in generation no logit lies beyond it, weights trained with one are refused without
// it, and formats that cannot say it are refused by name.
func TestSoftcapIsPartOfTheModel(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	const limit = 0.5
	cfg.Model.LogitSoftcap, cfg.Train.Steps, cfg.Train.EvalTokens, cfg.Schedule.Warmup = limit, 10, 256, 1
	capped := mustRun(t, run.Options{Config: cfg, Dir: dir})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	top := 0.0
	for _, z := range probeLogits(t, r) {
		top = max(top, math.Abs(z))
	}
	if !(top <= limit && top > limit/4) {
		t.Errorf("the largest of the logits that are capped at %v is %v", limit, top)
	}
	r.Model.Config.LogitSoftcap = 0
	free := 0.0
	for _, z := range probeLogits(t, r) {
		free = max(free, math.Abs(z))
	}
	if want := limit * math.Tanh(free/limit); math.Abs(top-want) > 1e-5 {
		t.Errorf("a logit of %v is capped to %v, want %v", free, top, want)
	}
	r.Model.Config.LogitSoftcap = limit
	// With logits within ±c no token has more than e^2c times the probability of another.
	if least := math.Log(1+319*math.Exp(-2*limit)) - 1e-6; capped.TrainLoss < least {
		t.Errorf("loss %v, below the least %v that capped logits can have", capped.TrainLoss, least)
	}
	if _, err := r.ExportHF(filepath.Join(t.TempDir(), "hf"), "F32"); err == nil ||
		!strings.Contains(err.Error(), "model.logit_softcap = 0.5") {
		t.Errorf("exported: %v", err)
	}
	edit(t, dir, "model.logit_softcap=0")
	if _, err := run.Resume(context.Background(), run.Options{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "trained with 0.5") {
		t.Errorf("resumed without the cap: %v", err)
	}
}

func probeLogits(t *testing.T, r *Trained) []float64 {
	t.Helper()
	g, err := model.NewGenerator(r.Model, r.Policy, r.dev)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	z := g.Logits([]int32{1, 2, 3})
	out := make([]float64, z.Len())
	for i := range out {
		out[i] = z.Float64(i)
	}
	return out
}
