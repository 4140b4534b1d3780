package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Begin starts a checkpoint that several processes write together, and returns the name of its directory. The caller
// sends the name to every process, and each writes its part there with a [Writer]. state is the state at this moment.
// Begin waits for the write in progress; if that failed it returns its error and starts nothing.
//
// When every part is complete, Commit makes them a checkpoint. If one part failed, the checkpoint has failed, too, and
// Abandon removes the other parts. This package does not communicate: the caller must find out whether the writers
// succeeded. Save does all of this for a process that writes everything.
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

// Commit joins the parts of all writers, numbered from 0, into a checkpoint, in the background like Save. The save
// fails if a part is missing or damaged, if the size, the header or the first or last chunk of a file is not visible
// to this process, or if the parts do not hold every element of every tensor exactly once.
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

// Abandon abandons the checkpoint that Begin has started, if any. Every Writer must be done with it.
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
