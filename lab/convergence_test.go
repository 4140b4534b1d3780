package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/run"
)

// On source text Muon, at AdamW's own rate, has learnt more than AdamW after the same few steps. Sophia, at a third of
// it as for other steps by sign, is within a tenth of it: its long momentum and its curvature need longer to be of
// use.
func TestMuonAndSophiaConvergeOnSource(t *testing.T) {
	data, dir := sourceData(t), t.TempDir()
	loss := func(name string, lr float64) float64 {
		cfg, err := config.Load("", []string{
			"data.path=" + data, "optimizer.name=" + name, fmt.Sprintf("optimizer.lr=%g", lr), "model.layers=2",
			"model.dim=64", "model.heads=2", "model.context=64", "train.steps=100", "train.batch_tokens=1024",
			"train.eval_every=0", "schedule.warmup=10", "checkpoint.every=0",
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Run(context.Background(), run.Options{Config: cfg, Dir: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		return r.TrainLoss
	}
	adamw, muon, sophia := loss("adamw", 6e-3), loss("muon", 6e-3), loss("sophia", 2e-3)
	t.Logf("nats per token after 100 steps: adamw %.3f, muon %.3f, sophia %.3f", adamw, muon, sophia)
	if muon > adamw {
		t.Errorf("muon ends at %.3f, adamw at %.3f", muon, adamw)
	}
	if sophia > 1.1*adamw {
		t.Errorf("sophia ends at %.3f, adamw at %.3f", sophia, adamw)
	}
}
