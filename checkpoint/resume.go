package checkpoint

import (
	"errors"
	"fmt"
	"strings"

	"anneal/internal/fileio"
)

// LoadLatest is the function LoadLatest for the store's directory. It also warns of skipped checkpoints, remembers
// them, and repairs the pointer to the latest checkpoint. With the option Together it fills this process's tensors,
// and checks every byte of the checkpoint, because other processes load the rest.
func (s *Store) LoadLatest(tensors []Tensor, state any) (Info, error) {
	if err := s.Wait(); err != nil {
		return Info{}, err
	}
	info, err := loadLatest(s.root, tensors, state, s.role())
	if err != nil {
		return info, err
	}
	for _, err := range info.Skipped {
		s.opt.Log.Warn("checkpoint skipped", "fault", err, "using", info.Name)
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			s.bad[fault.Checkpoint] = true
		}
	}
	return info, s.goOn(info)
}

// goOn makes a loaded checkpoint the parent of the next one, and makes latest point to it.
func (s *Store) goOn(info Info) error {
	s.parent = info.Name
	for _, name := range info.Ignored {
		s.opt.Log.Warn("ignored an unknown file in a checkpoint", "checkpoint", info.Name, "file", name)
	}
	text, err := fileio.ReadSmall(s.path("latest"), 4096)
	if err == nil && strings.TrimSpace(string(text)) == info.Name {
		return nil
	}
	if err := s.publish(info.Name); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

func (s *Store) role() role {
	if s.opt.Together {
		return leader
	}
	return alone
}
