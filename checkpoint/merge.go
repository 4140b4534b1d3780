package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Merge rewrites the checkpoint with the given name under root in the form that a single process writes: whole
// tensors, in one file for each kind. It writes to out, a directory of checkpoints that is made if needed, with the
// step, state, origin and age of the original and the same hashes. If out is root, the result replaces the original; a
// checkpoint that is already whole does not change. Merge checks every byte that it reads, and needs memory for the
// largest tensor. It takes the lock of out.
func Merge(root, name, out string) (info Info, err error) {
	e, err := named(root, name)
	if err != nil {
		return Info{}, err
	}
	s, err := Open(out, Options{Synchronous: true, Origin: e.Origin})
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	inPlace, err := sameDir(root, out)
	if err != nil || inPlace && e.manifest.isWhole() {
		return e.Info, err
	}
	text, err := e.reader(root).state()
	if err != nil {
		return Info{}, err
	}
	j, err := s.newJob(e.Step, e.Tokens, json.RawMessage(text))
	if err != nil {
		return Info{}, err
	}
	j.sequence, j.parent = e.sequence, e.manifest.Parent
	if name, err = s.merge(j, e.tensors(root)); err != nil {
		return Info{}, errors.Join(j.failed(err), s.fs.RemoveAll(j.tmp))
	}
	if inPlace {
		if err := s.remove(e.Name); err != nil {
			return Info{}, fmt.Errorf("checkpoint: %s replaces %s, which cannot be deleted: %w", name, e.Name, err)
		}
	}
	if err := s.pointToNewest(); err != nil {
		return Info{}, err
	}
	if e, err = named(out, name); err != nil {
		return Info{}, err
	}
	return e.Info, nil
}

// merge writes a checkpoint of tensors and returns its name.
func (s *Store) merge(j *job, tensors []Tensor) (name string, err error) {
	p, err := plan(tensors, "")
	if err != nil {
		return "", err
	}
	if err := s.space(p.bytes() + int64(len(j.state))); err != nil {
		return "", err
	}
	if err := s.fs.Mkdir(j.tmp); err != nil {
		return "", err
	}
	m, err := p.write(s.fs, j.tmp)
	if err != nil {
		return "", err
	}
	return s.commit(j, m)
}

// sameDir reports whether two paths lead to the same directory.
func sameDir(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y), err
}

// isWhole reports whether the checkpoint has the form that a single process writes.
func (m *manifest) isWhole() bool {
	for _, t := range m.Tensors {
		if len(t.Pieces) > 1 || t.Pieces[0].File != t.kind()+".safetensors" || !t.Pieces[0].Region.isZero() {
			return false
		}
	}
	return true
}

// tensors lists the tensors of a checkpoint. Their bytes are read when they are needed.
func (e *Entry) tensors(root string) []Tensor {
	r := e.reader(root)
	list := make([]Tensor, 0, len(e.manifest.Tensors))
	for name, t := range e.manifest.Tensors {
		list = append(list, Tensor{
			Name: name, DType: t.DType, Shape: t.Shape, Remote: stored{r, name},
			Optim: t.kind() == optimKind, Average: t.kind() == averageKind,
		})
	}
	return list
}

// stored is a tensor on the disk. It implements Remote, to be read.
type stored struct {
	*reader
	name string
}

func (t stored) Read(dst []byte) error {
	entry := t.m.Tensors[t.name]
	s, err := Region{}.span(entry.DType, entry.Shape)
	if err != nil {
		return err
	}
	return t.fetch([]want{{t.name, s, dst, nil}})
}

func (stored) Write([]byte) error { return errors.ErrUnsupported }
