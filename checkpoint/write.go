package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// job is one save, without the tensors.
type job struct {
	step, tokens, sequence int64
	parent                 string
	origin                 Origin
	state                  []byte
	tmp                    string // directory that is renamed when the checkpoint is complete
	began                  time.Time
}

func (j *job) failed(err error) error {
	return fmt.Errorf("checkpoint: step %d not saved: %w", j.step, err)
}

// write runs the commit protocol. The order of its steps makes a kill harmless. gather writes or collects the tensors
// and returns their part of the manifest.
func (s *Store) write(j *job, gather func() (*manifest, error)) error {
	m, err := gather()
	name := ""
	if err == nil {
		name, err = s.commit(j, m)
	}
	if err != nil {
		// Files that cannot be removed now are swept when the directory is next opened.
		return errors.Join(j.failed(err), s.fs.RemoveAll(j.tmp))
	}
	s.parent = name
	if err := s.publish(name); err != nil {
		return fmt.Errorf("checkpoint: step %d is saved, but %s could not be updated: %w",
			j.step, s.path("latest"), err)
	}
	s.opt.Log.Debug("checkpoint saved", "name", name, "bytes", m.bytes(), "took", time.Since(j.began))
	s.prune()
	return nil
}

// commit adds the state and the manifest to the tensors, renames the directory, and returns its final name.
func (s *Store) commit(j *job, m *manifest) (name string, err error) {
	entry, err := writeBytes(s.fs, j.tmp, stateName, j.state)
	if err != nil {
		return "", err
	}
	m.Sequence, m.Step, m.Tokens, m.Parent, m.Origin = j.sequence, j.step, j.tokens, j.parent, j.origin
	m.Files = append(m.Files, entry)
	if err := m.check(); err != nil {
		return "", err
	}
	if err := s.fs.SyncDir(j.tmp); err != nil {
		return "", err
	}
	if err := m.write(s.fs, j.tmp, manifestName); err != nil {
		return "", err
	}
	if err := s.fs.SyncDir(j.tmp); err != nil {
		return "", err
	}
	if name, err = freeName(s.root, j.step); err != nil {
		return "", err
	}
	if err := s.fs.Rename(j.tmp, s.path(name)); err != nil {
		return "", err
	}
	return name, s.fs.SyncDir(s.root)
}

// freeName returns step-N, or step-N-2, step-N-3 … for a step that was saved before (for example before a rewind). The
// older checkpoint stays until the newer one is complete.
func freeName(root string, step int64) (string, error) {
	base := fmt.Sprintf("step-%08d", step)
	name := base
	for i := 2; ; i++ {
		_, err := os.Lstat(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
}

// publish points latest at name.
func (s *Store) publish(name string) error {
	tmp := tempName("latest")
	if _, err := writeBytes(s.fs, s.root, tmp, []byte(name+"\n")); err != nil {
		return errors.Join(err, s.fs.RemoveAll(s.path(tmp)))
	}
	if err := s.fs.Rename(s.path(tmp), s.path("latest")); err != nil {
		return errors.Join(err, s.fs.RemoveAll(s.path(tmp)))
	}
	return s.fs.SyncDir(s.root)
}
