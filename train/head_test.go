package train

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/model"
)

// z-loss is reported apart: the loss of the first step is that of a run without it, to the bit, and the mean of log²Z
// of weights that know nothing yet is log²V. It then keeps log Z smaller than it would be.
func TestZLossIsReportedApartAndHolds(t *testing.T) {
	data := testData(t)
	run := func(coefficient float64) ([]map[string]any, float64) {
		cfg, dir := tinyConfig(data), filepath.Join(t.TempDir(), "run")
		cfg.Train.ZLoss, cfg.Train.EvalTokens = coefficient, 256
		r := mustRun(t, Options{Config: cfg, Dir: dir})
		return readMetrics(t, dir), r.ValLoss
	}
	plain, _ := run(0)
	const coefficient, faint = 0.05, 1e-9
	free, _ := run(faint)
	with, val := run(coefficient)
	if _, there := plain[0]["z_loss"]; there || plain[0]["loss"] != with[0]["loss"] || plain[0]["grad_norm"] == with[0]["grad_norm"] {
		t.Errorf("first step without %v\nwith %v", plain[0], with[0])
	}
	first, last := with[0]["z_loss"].(float64)/coefficient, with[39]["z_loss"].(float64)/coefficient
	if want := math.Pow(math.Log(320), 2); math.Abs(first/want-1) > 0.01 {
		t.Errorf("log²Z at the start is %v, want %v", first, want)
	}
	t.Logf("log²Z %.2f → %.2f, without z-loss %.2f; loss %v, without %v", first, last, free[39]["z_loss"].(float64)/faint, with[39]["loss"], plain[39]["loss"])
	if unheld := free[39]["z_loss"].(float64) / faint; last > 0.95*unheld || with[39]["loss"].(float64) > 1.1*plain[39]["loss"].(float64) {
		t.Errorf("log²Z went to %v instead of %v, the loss to %v instead of %v", last, unheld, with[39]["loss"], plain[39]["loss"])
	}
	if got := with[39]["val_loss"]; got != val || val > 1.2*with[39]["loss"].(float64) {
		t.Errorf("validation loss %v beside %v: it must not have the z-loss", got, with[39])
	}
}

// A soft-cap is part of the model: in generation no logit lies beyond it, weights trained with one are refused without
// it, and formats that cannot say it are refused by name.
func TestSoftcapIsPartOfTheModel(t *testing.T) {
	cfg, dir := tinyConfig(testData(t)), filepath.Join(t.TempDir(), "run")
	const limit = 0.5
	cfg.Model.LogitSoftcap, cfg.Train.Steps, cfg.Train.EvalTokens, cfg.Schedule.Warmup = limit, 10, 256, 1
	capped := mustRun(t, Options{Config: cfg, Dir: dir})
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
	if _, err := r.ExportHF(filepath.Join(t.TempDir(), "hf"), "F32"); err == nil || !strings.Contains(err.Error(), "model.logit_softcap = 0.5") {
		t.Errorf("exported: %v", err)
	}
	edit(t, dir, "model.logit_softcap=0")
	if _, err := Resume(context.Background(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "trained with 0.5") {
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
