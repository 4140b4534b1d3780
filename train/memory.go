package train

import "anneal/internal/machine"

// snapshotFits reports whether memory allows the copy of weights and optimizer state with which a checkpoint is
// written during training.
func snapshotFits(t *Trainer) bool { return t.Footprint().CopyFits(machine.ReadMemory().Available) }
