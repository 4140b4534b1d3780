package run

import "anneal/internal/machine"

// snapshotFits reports whether memory allows the copy of weights and optimizer state with which a checkpoint is
// written during training. The ranks of a host share its memory.
func (s *session) snapshotFits() bool {
	return s.trainer.Footprint().CopyFits(machine.ReadMemory().Available / int64(s.beside))
}
