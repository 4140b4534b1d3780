package run

import (
	"anneal/internal/machine"
	"anneal/train"
)

// snapshotFits reports whether memory allows the copy of weights and optimizer state with which a checkpoint is
// written during training.
func snapshotFits(t *train.Trainer) bool {
	return t.Footprint().CopyFits(machine.ReadMemory().Available)
}
