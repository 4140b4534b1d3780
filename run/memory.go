package run

import (
	"anneal/internal/machine"
	"anneal/train"
)

// checkMemory returns an error if the ranks of this host need more memory than it has. A single rank finds out when it
// makes its trainer.
func (s *session) checkMemory() error {
	if s.world.alone() {
		return nil
	}
	f, err := train.MeasureRank(s.cfg, s.dev, s.World)
	if err != nil {
		return err
	}
	free := s.dev.FreeMemory()
	if !s.dev.Apart() { // otherwise each rank has its own card
		free /= int64(s.beside)
	}
	return f.Refuse(free)
}

// snapshotFits reports whether there is memory for the copy of weights and optimizer state that lets training continue
// while a checkpoint is written. The ranks of a host share its memory.
func (s *session) snapshotFits() bool {
	return s.trainer.Footprint().CopyFits(machine.ReadMemory().Available / int64(s.beside))
}

// ownedBytes returns how many bytes this rank writes to a checkpoint.
func (s *session) ownedBytes() (n int64) {
	for i := range s.owned {
		n += s.owned[i].Bytes()
	}
	return n
}

// weigh computes the size of a checkpoint, over all ranks.
func (s *session) weigh() error {
	all, err := share(s.world, s.ownedBytes())
	for _, n := range all {
		s.bytes += n
	}
	return err
}
