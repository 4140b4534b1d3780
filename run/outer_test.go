package run

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/device/cpu"
	"anneal/train"
	"anneal/train/traintest"
)

// groupsConfig is a small run of two groups, on n ranks, which meet after steps 4, 8, … and after the last one.
func groupsConfig(data string, n int) *config.Config {
	cfg := ranksConfig(data, n)
	cfg.Train.Steps = 10
	cfg.Parallel.Outer = config.Outer{Groups: 2, Every: 4, LR: 0.7, Momentum: 0.9}
	return cfg
}

// A run of groups that is stopped between two meetings, and resumed on another number of ranks, ends with the bits of
// one that was never stopped. Its weights can be used like those of any run.
func TestGroupsResumeWithTheSameBits(t *testing.T) {
	data := traintest.Data(t)
	whole := mustRun(t, Options{Config: groupsConfig(data, 2), Dir: filepath.Join(t.TempDir(), "whole"), Threads: 4})
	dir := filepath.Join(t.TempDir(), "run")
	o := Options{Config: groupsConfig(data, 4), Dir: dir, Threads: 4}
	for i, stop := range []int{2, 5, 7} {
		ctx, cancel := context.WithCancel(context.Background())
		o.OnProgress = func(e train.Event) {
			if e.Step == stop {
				cancel()
			}
		}
		begin := Resume
		if i == 0 {
			begin = Run
		}
		if r, err := begin(ctx, o); err != nil || !r.Interrupted || r.Step < stop || r.Step > stop+1 {
			t.Fatalf("stopped at step %d: %+v, %v", stop, r, err)
		}
		o.Overrides = [][]string{
			{"parallel.ranks=2"}, {"parallel.ranks=4", "parallel.zero=3"}, {"parallel.ranks=4", "parallel.zero=1"},
		}[i]
	}
	o.OnProgress = nil
	r, err := Resume(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	wantHash(t, r, [2]string{whole.WeightsHash, whole.OptimizerHash})
	if r.ValLoss != whole.ValLoss || r.TrainLoss != whole.TrainLoss {
		t.Errorf("it reports %g and %g, want %g and %g", r.ValLoss, r.TrainLoss, whole.ValLoss, whole.TrainLoss)
	}
	if v, err := Verify(dir); err != nil || len(v.Remarks) > 0 {
		t.Errorf("%+v, %v", v, err)
	}
	w, err := OpenWeights(dir, WeightOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if err := w.Load(dev); err != nil || w.Step != 10 {
		t.Errorf("the weights of step %d: %v", w.Step, err)
	}
}

// A checkpoint of another number of groups is refused with one error that names both.
func TestOtherGroupsAreRefused(t *testing.T) {
	data := traintest.Data(t)
	grouped, plain := filepath.Join(t.TempDir(), "grouped"), filepath.Join(t.TempDir(), "plain")
	cfg := groupsConfig(data, 2)
	cfg.Train.Steps = 2
	mustRun(t, Options{Config: cfg, Dir: grouped, Threads: 4})
	cfg = ranksConfig(data, 2)
	cfg.Train.Steps = 2
	mustRun(t, Options{Config: cfg, Dir: plain, Threads: 4})
	for _, c := range []struct{ dir, overrides, want string }{
		{grouped, "parallel.outer.groups=4 parallel.ranks=4", "groups = 4, but the checkpoint is of 2 groups"},
		{plain, "parallel.outer.groups=2", "groups = 2, but the checkpoint is of a run without groups"},
	} {
		_, err := Resume(context.Background(), Options{
			Dir: c.dir, Threads: 4, Overrides: append(strings.Fields(c.overrides), "train.steps=4"),
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v", c.overrides, err)
		}
	}
}
