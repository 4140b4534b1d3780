package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Begin starts a checkpoint that several processes write together, and returns the name of its directory, which the
// caller tells every process: each writes its part there with a [Writer]. state is that of this moment. Begin waits
// for the write in progress; if that failed it returns its error and starts nothing.
//
// When every part is complete, Commit makes them a checkpoint. If one failed, the checkpoint has failed too, and
// Abandon removes the others. This package does not communicate: the caller finds out, by its own means, how the
// writers fared. Save is all of it, for a process that writes everything.
func (s *Store) Begin(step, tokens int64, state any) (dir string, err error) {
	if err := s.Wait(); err != nil {
		return "", err
	}
	j, err := s.newJob(step, tokens, state)
	if err != nil {
		return "", err
	}
	s.sequence++
	if err := s.fs.Mkdir(j.tmp); err != nil {
		return "", j.failed(err)
	}
	s.pending = j
	return filepath.Base(j.tmp), nil
}

// Commit makes the parts of the writers from 0 up a checkpoint, in the background like Save. A part that is missing
// or damaged, a file that does not have its size, its header and its first and last chunk here too, or parts that do
// not hold every element of every tensor exactly once, are a failed save.
func (s *Store) Commit(writers int) error {
	j := s.pending
	if j == nil {
		return errors.New("checkpoint: Commit without Begin")
	}
	s.pending = nil
	return s.begin(s.opt.Synchronous, nil, func() error {
		return s.write(j, func() (*manifest, error) {
			m, err := collect(s.fs, j.tmp, writers)
			if err == nil {
				err = m.readBack(j.tmp)
			}
			return m, err
		})
	})
}

// Abandon gives up what Begin has started, if anything. Every Writer must be done with it.
func (s *Store) Abandon() error {
	j := s.pending
	if j == nil {
		return nil
	}
	s.pending = nil
	if err := s.fs.RemoveAll(j.tmp); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
