package use

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/run"
	"anneal/train/traintest"

	"anneal/checkpoint"
	"anneal/config"
)

// An average changes no bit of the weights, is restored bit for bit, and its evaluation is that of a model with its
// weights.
func TestAverageIsBesideTheWeights(t *testing.T) {
	data := traintest.Data(t)
	trained := func(ema float64, steps int) (*config.Config, string) {
		cfg := traintest.Config(data)
		cfg.Train.Steps, cfg.Average.EMA, cfg.Train.EvalTokens, cfg.Schedule.Warmup = steps, ema, 0, 1
		return cfg, filepath.Join(t.TempDir(), "run")
	}
	plainConfig, plainDir := trained(0, 12)
	plain := mustRun(t, run.Options{Config: plainConfig, Dir: plainDir})
	cfg, dir := trained(0.9, 12)
	whole := mustRun(t, run.Options{Config: cfg, Dir: dir})
	if plain.WeightsHash != whole.WeightsHash || plain.ValLoss != whole.ValLoss {
		t.Errorf("with an average the weights are %.12s at loss %v, without %.12s at %v",
			whole.WeightsHash, whole.ValLoss, plain.WeightsHash, plain.ValLoss)
	}
	sizes := map[string]int64{}
	for _, a := range whole.Arenas {
		sizes[a.Name] = a.Peak
	}
	if sizes["weight average"] != sizes["gradients"] || len(plain.Arenas) != len(whole.Arenas)-1 {
		t.Errorf("the average takes %d bytes, the gradients %d", sizes["weight average"], sizes["gradients"])
	}
	if !math.IsNaN(plain.ValLossEMA) || !(whole.ValLossEMA > whole.ValLoss) {
		t.Errorf("loss of the average: %v without one, %v beside %v", plain.ValLossEMA, whole.ValLossEMA, whole.ValLoss)
	}
	r, err := OpenWith(dir, OpenOptions{Threads: 1, WeightOptions: run.WeightOptions{Average: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if e, err := r.Evaluate(context.Background(), data, 0, nil); err != nil || e.Loss != whole.ValLossEMA {
		t.Errorf("opened, the average has loss %v (%v), the run reported %v", e.Loss, err, whole.ValLossEMA)
	}
	lines := readMetrics(t, dir)
	if got := lines[len(lines)-1]["val_loss_ema"]; got != whole.ValLossEMA {
		t.Errorf("metrics say %v", got)
	}
	if r, err := OpenWith(plainDir, OpenOptions{Threads: 1, WeightOptions: run.WeightOptions{Average: true}}); err ==
		nil || !strings.Contains(err.Error(), "anneal ckpt average") {
		t.Errorf("a run without an average was opened: %v, %v", r, err)
	}
	// Stopped and resumed.
	cfg, dir = trained(0.9, 12)
	if r, err := run.Run(&countdown{context.Background(), 5}, run.Options{Config: cfg, Dir: dir}); err != nil ||
		!r.Interrupted {
		t.Fatal(err)
	}
	if got := resumeTo(t, dir); got != [2]string{whole.WeightsHash, whole.OptimizerHash} {
		t.Errorf("resumed: %v, uninterrupted %v", got, whole)
	}
	if _, other, _, err := checkpoint.Hash(filepath.Join(dir, "checkpoints")); err != nil ||
		other != whole.OptimizerHash {
		t.Errorf("the checkpoint's state has hash %v, %v; the run's %v", other, err, whole.OptimizerHash)
	}
}
