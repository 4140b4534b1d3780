//go:build cuda && linux

package run

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/train/traintest"
)

// Every way to share a model among ranks has, on cards, the losses of one card, and those of the CPU.
func TestMeshesOfGPUsTrainToTheLossesOfOne(t *testing.T) {
	emulatedCard(t)
	data := traintest.Data(t)
	losses := func(t *testing.T, keys ...string) [2]float64 {
		set := append([]string{"device=cuda", "model.layers=4", "model.heads=4", "model.kv_heads=2", "train.steps=2",
			"train.batch_tokens=128", "train.micro_batch=2", "train.eval_every=2", "train.eval_tokens=64"}, keys...)
		r := mustRun(t, Options{
			Config: smallConfig(t, data, set...), Dir: filepath.Join(t.TempDir(), "run"), Threads: 8,
		})
		return [2]float64{r.TrainLoss, r.ValLoss}
	}
	for _, c := range []struct {
		precision string
		cpu, card float64 // how close, relative
		meshes    []string
	}{
		{"fp64", 1e-12, 1e-10, []string{
			"tensor=2", "tensor=2 sequence=false",
			"pipeline=2", "pipeline=2 schedule=zb-h1", "pipeline=2 schedule=interleaved:2",
			"context=2", "context=2 attention=ulysses",
			"tensor=2 pipeline=2 ranks=8 zero=1", "tensor=2 pipeline=2 context=2",
		}},
		{"bf16", 2e-3, 2e-3, []string{"tensor=2 pipeline=2", "context=2", "context=2 attention=ulysses"}},
	} {
		t.Run(c.precision, func(t *testing.T) {
			alone := losses(t, "precision="+c.precision)
			near(t, alone, losses(t, "precision="+c.precision, "device=cpu"), c.cpu)
			for _, mesh := range c.meshes {
				t.Run(mesh, func(t *testing.T) {
					keys := strings.Fields("parallel." + strings.ReplaceAll(mesh, " ", " parallel."))
					near(t, losses(t, append(keys, "precision="+c.precision)...), alone, c.card)
				})
			}
		})
	}
}

// near compares the losses of training and validation.
func near(t *testing.T, got, want [2]float64, within float64) {
	t.Helper()
	for i := range got {
		if apart := math.Abs(got[i]-want[i]) / want[i]; !(apart <= within) {
			t.Errorf("loss %v, want %v: %.2g apart", got[i], want[i], apart)
		}
	}
}
