package run

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/train"
)

// A state that no run can have come to is refused, whatever its checksum says.
func TestStatesThatNoRunCanHaveAreRefused(t *testing.T) {
	sound := state{
		Progress: train.Position{Step: 10, Updates: 9, Sample: 80, Tokens: 640, Applied: 576, Clipped: 3},
		Data:     dataset.State{Data: "some", Sample: 80}, EvalStep: 10, Guard: train.Guard{Skipped: 1},
		Config: config.Default(), Past: []stretch{{4, config.Default()}, {10, config.Default()}},
	}
	if err := sound.Check(10, 640); err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(*state){
		"another step":          func(s *state) { s.Progress.Step = 9 },
		"other tokens":          func(s *state) { s.Progress.Tokens++ },
		"negative updates":      func(s *state) { s.Progress.Updates = -1 },
		"more updates":          func(s *state) { s.Progress.Updates = 11 },
		"clipped before":        func(s *state) { s.Progress.Recent = 1 << 63 },
		"negative clipped":      func(s *state) { s.Progress.Clipped = -1 },
		"tokens nobody applied": func(s *state) { s.Progress.Applied = math.MaxInt64 },
		"samples without end":   func(s *state) { s.Progress.Sample, s.Data.Sample = math.MaxUint64, math.MaxUint64 },
		"data elsewhere":        func(s *state) { s.Data.Sample = 81 },
		"evaluated in advance":  func(s *state) { s.EvalStep = 11 },
		"skips in a row":        func(s *state) { s.Guard.Row = 2 },
		"a first skip to come":  func(s *state) { s.Guard.RowFirst = s.Progress.Step + 2 },
		"negative skips":        func(s *state) { s.Guard.Row, s.Guard.Skipped = -1, -1 },
		"changed in advance":    func(s *state) { s.Past = []stretch{{11, config.Default()}} },
		"changed twice at once": func(s *state) { s.Past = []stretch{{4, config.Default()}, {4, config.Default()}} },
		"unknown configuration": func(s *state) { s.Past = []stretch{{4, nil}} },
	} {
		forged := sound
		forge(&forged)
		if forged.Check(10, 640) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The state of the largest windows and most groups that a configuration may have fits in a checkpoint.
func TestTheStateOfAllGroupsFitsInACheckpoint(t *testing.T) {
	for _, c := range []struct{ groups, window int }{{1, 1 << 16}, {2, 1 << 15}, {512, 128}, {1 << 10, 64}} {
		cfg := smallConfig(t, "/d", "train.batch_tokens=64Ki", "train.micro_batch=1", "model.context=64",
			"guard.spike_z=6", fmt.Sprint("guard.window=", c.window), fmt.Sprint("parallel.outer.groups=", c.groups))
		guard, s := train.Guard{}, newState()
		for i := range cfg.Guard.Window {
			x := math.Pi / float64(i+1) // of as many digits as a loss can have
			guard.Losses, guard.Norms = append(guard.Losses, x), append(guard.Norms, x)
		}
		s.Guard, s.Config = guard, cfg
		for range c.groups - 1 {
			s.Groups = append(s.Groups, train.State{Guard: guard})
		}
		root := t.TempDir()
		store, err := checkpoint.Open(root, checkpoint.Options{Synchronous: true})
		if err != nil {
			t.Fatal(err)
		}
		weight := checkpoint.Tensor{Name: "w", DType: "F32", Shape: []int{1}, Data: make([]byte, 4)}
		err = errors.Join(store.Save(0, 0, []checkpoint.Tensor{weight}, s), store.Close())
		var saved state
		if err == nil {
			_, err = checkpoint.LoadState(root, &saved)
		}
		if err != nil || len(saved.Groups) != c.groups-1 {
			t.Errorf("%d groups with windows of %d steps: %v", c.groups, c.window, err)
		}
	}
}
