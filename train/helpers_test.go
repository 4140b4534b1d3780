package train

import (
	"testing"

	"anneal/device/cpu"
	"anneal/train/checkpoint"
	"anneal/train/config"
)

// trainerOf returns a trainer on a device of its own; both live as long as the test.
func trainerOf(t testing.TB, cfg *config.Config, threads int) *Trainer {
	t.Helper()
	dev, err := cpu.New(threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dev.Close)
	tr, err := newTrainer(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

// hashes returns the hashes of a trainer's weights and optimizer state.
func hashes(t *Trainer) [2]string {
	w, o, _ := checkpoint.HashTensors(t.checkpointTensors())
	return [2]string{w, o}
}
