//go:build cuda && linux

package run

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"anneal/device/cuda/emulator"
	"anneal/train"
	"anneal/train/traintest"
)

// emulatedCard makes device=cuda the emulated GPU, until the test ends.
func emulatedCard(t *testing.T) {
	t.Helper()
	t.Setenv("ANNEAL_CUDA_PATH", emulator.Dir(t))
}

// A run on a GPU is the run on the CPU but for the order of sums: its losses are as close as its number format allows.
// Stopped and resumed it has the same bits, and the CPU can go on with it.
func TestARunOnAGPUIsCloseToTheRunOnTheCPU(t *testing.T) {
	emulatedCard(t)
	data := traintest.Data(t)
	for _, c := range []struct {
		name  string
		close float64 // relative
		set   []string
	}{
		{"fp64", 1e-12, []string{"precision=fp64"}},
		{"fp32", 1e-6, []string{"precision=fp32", "data.document_mask=true"}},
		{"bf16", 2e-3, []string{"model.attention=window:8,full"}},
		{"fp16", 5e-4, []string{"precision=fp16", "optimizer.name=lion"}},
		{"fp8", 2e-2, []string{"precision=fp8", "optimizer.name=adam8bit"}},
		{"fp8 blocks", 2e-2, []string{"precision=fp8", "fp8.scaling=block", "fp8.attention=true"}},
		{"muon", 2e-3, []string{"optimizer.name=muon"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := append([]string{"train.steps=4", "schedule.warmup=1", "train.micro_batch=4", "train.eval_every=4",
				"train.eval_tokens=256", "checkpoint.every=2"}, c.set...)
			dir := t.TempDir()
			want := mustRun(t, Options{Config: with(t, data, set...), Dir: filepath.Join(dir, "cpu")})
			set = append(set, "device=cuda")
			got := mustRun(t, Options{Config: with(t, data, set...), Dir: filepath.Join(dir, "gpu")})
			for _, x := range [][2]float64{{got.TrainLoss, want.TrainLoss}, {got.ValLoss, want.ValLoss}} {
				if !(math.Abs(x[0]-x[1]) <= c.close*x[1]) {
					t.Errorf("loss %v, on the CPU %v: %.2g apart", x[0], x[1], math.Abs(x[0]-x[1])/x[1])
				}
			}
			stopped := Options{Config: with(t, data, set...), Dir: filepath.Join(dir, "stopped")}
			ctx, cancel := context.WithCancel(context.Background())
			stopped.OnProgress = func(p train.Event) {
				if p.Step == 2 {
					cancel()
				}
			}
			if r, err := Run(ctx, stopped); err != nil || !r.Interrupted {
				t.Fatalf("not stopped: %v, %v", r, err)
			}
			resumed, err := Resume(context.Background(), Options{Dir: stopped.Dir})
			if err != nil {
				t.Fatal(err)
			}
			if resumed.WeightsHash != got.WeightsHash || resumed.OptimizerHash != got.OptimizerHash {
				t.Error("resumed on the GPU: weights or state are not those of one go")
			}
		})
	}
}
