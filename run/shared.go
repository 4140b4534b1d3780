package run

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"anneal/checkpoint"
	"anneal/config"
)

// sharePatience is how long a rank waits until it sees a file of the leader; network file systems take seconds.
const sharePatience = 10 * time.Second

// openRank prepares one of several ranks, once the leader owns the run's directory, which all ranks must see.
func (s *session) openRank() error {
	if s.world.alone() {
		return nil
	}
	if err := s.checkShared(); err != nil {
		return err
	}
	s.look.now.Place = placeIn(s.cfg.Parallel, s.world.Rank(), s.world.Size())
	s.look.open(s.dir.place(s.world.Rank()))
	s.parts.writer = &checkpoint.Writer{
		Root: s.dir.checkpoints(), Number: s.world.Rank(), Synchronous: !s.snapshotFits(),
	}
	return nil
}

// checkShared returns an error unless every rank sees files that the leader writes to the run directory.
func (s *session) checkShared() error {
	path := filepath.Join(s.dir.ranks(), "session")
	mark, err := led(s.world, func() ([]byte, error) {
		mark := []byte(rand.Text())
		if err := errors.Join(os.RemoveAll(s.dir.ranks()), os.Mkdir(s.dir.ranks(), 0o777)); err != nil {
			return nil, err
		}
		return mark, os.WriteFile(path, mark, 0o666)
	})
	if err != nil {
		return err
	}
	return s.world.agree(awaitFile(path, mark, sharePatience))
}

// awaitFile waits until a file has the given contents.
func awaitFile(path string, want []byte, patience time.Duration) error {
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		got, err := os.ReadFile(path)
		if err == nil && bytes.Equal(got, want) {
			return nil
		}
		if time.Since(begun) > patience {
			return config.Problem{
				Message: fmt.Sprintf("%s does not see what rank 0 has written to %s", hostname(), path),
				Try:     "a --out on a file system that all hosts share",
			}
		}
	}
}
