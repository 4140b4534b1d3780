//go:build cuda && linux

package run

import (
	"math"
	"path/filepath"
	"testing"

	"anneal/train/traintest"
)

// Ranks with a GPU each train to the losses of one: they are the same sums, so in the reference mode they have the same
// bits.
func TestRanksOnGPUsTrainToTheLossesOfOne(t *testing.T) {
	emulatedCard(t)
	data := traintest.Data(t)
	for _, c := range []struct {
		name string
		set  []string
	}{
		{"zero 0", []string{"precision=fp64", "parallel.ranks=2", "parallel.zero=0"}},
		{"zero 1", []string{"precision=bf16", "parallel.ranks=2", "parallel.zero=1"}},
		{"zero 3", []string{"precision=fp64", "parallel.ranks=4", "parallel.zero=3", "threads=4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := append([]string{"device=cuda", "train.steps=3", "schedule.warmup=1", "train.micro_batch=2",
				"train.eval_every=3", "train.eval_tokens=256"}, c.set...)
			dir := t.TempDir()
			got := mustRun(t, Options{Config: with(t, data, set...), Dir: filepath.Join(dir, "ranks")})
			set = append(set, "parallel.ranks=1")
			want := mustRun(t, Options{Config: with(t, data, set...), Dir: filepath.Join(dir, "alone")})
			for _, x := range [][2]float64{{got.TrainLoss, want.TrainLoss}, {got.ValLoss, want.ValLoss}} {
				if math.IsNaN(x[0]) || x[0] != x[1] {
					t.Errorf("loss %v, of one rank %v", x[0], x[1])
				}
			}
		})
	}
}

// Groups of ranks that step alone, each with a communicator of its own, have the losses that they have on the CPU.
func TestGroupsOfGPUsTrainAsOnTheCPU(t *testing.T) {
	emulatedCard(t)
	data := traintest.Data(t)
	set := []string{"precision=fp64", "parallel.ranks=4", "parallel.outer.groups=2",
		"parallel.outer.every=2", "threads=4", "train.steps=4", "schedule.warmup=1", "train.micro_batch=2"}
	dir := t.TempDir()
	want := mustRun(t, Options{Config: with(t, data, set...), Dir: filepath.Join(dir, "cpu")})
	got := mustRun(t, Options{Config: with(t, data, append(set, "device=cuda")...), Dir: filepath.Join(dir, "gpu")})
	if !(math.Abs(got.TrainLoss-want.TrainLoss) <= 1e-12*want.TrainLoss) {
		t.Errorf("loss %v, on the CPU %v", got.TrainLoss, want.TrainLoss)
	}
}
