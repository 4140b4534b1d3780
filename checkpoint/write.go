package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"anneal/safetensors"
)

// job is one save. After plan its tensors are grouped by file, in file order.
type job struct {
	step, tokens, sequence int64
	parent                 string
	state                  []byte
	tensors                []Tensor
	files                  []plannedFile
	began                  time.Time
}

type plannedFile struct {
	name   string
	prefix []byte             // safetensors header
	infos  []safetensors.Info // parallel to the tensors of the file, which follow those of the previous file
}

// plan distributes the tensors over files.
func (j *job) plan(tensors []Tensor) error {
	for _, file := range []string{modelName, optimName, averageName} {
		var infos []safetensors.Info
		byName := map[string]Tensor{}
		for _, t := range tensors {
			if t.file() == file {
				infos = append(infos, safetensors.Info{Name: t.Name, DType: safetensors.DType(t.DType), Shape: t.Shape})
				byName[t.Name] = t
			}
		}
		if len(infos) == 0 {
			continue
		}
		prefix, order, err := safetensors.Layout(infos, nil)
		if err != nil {
			return err
		}
		j.files = append(j.files, plannedFile{file, prefix, order})
		for _, info := range order {
			j.tensors = append(j.tensors, byName[info.Name])
		}
	}
	return nil
}

func (j *job) tensorBytes() (n int64) {
	for _, t := range j.tensors {
		n += t.Bytes()
	}
	return n
}

// write runs the commit protocol. The order of its steps makes a kill harmless.
func (s *Store) write(j *job) error {
	tmp := s.path(tempName(fmt.Sprintf("step-%08d", j.step)))
	m := &manifest{
		Format: formatName, FormatVersion: formatVersion, Sequence: j.sequence, Step: j.step, Tokens: j.tokens,
		Parent: j.parent, Origin: s.opt.Origin,
		ChunkBytes: chunkBytes, Tensors: map[string]tensorEntry{},
	}
	name, err := s.commit(tmp, j, m)
	if err != nil {
		// What cannot be removed now is swept when the directory is next opened.
		return errors.Join(fmt.Errorf("checkpoint: step %d not saved: %w", j.step, err), s.fs.RemoveAll(tmp))
	}
	s.parent = name
	if err := s.publish(name); err != nil {
		return fmt.Errorf("checkpoint: step %d is saved, but %s could not be updated: %w", j.step, s.path("latest"), err)
	}
	s.opt.Log.Debug("checkpoint saved", "name", name, "bytes", m.bytes(), "took", time.Since(j.began))
	s.prune()
	return nil
}

// commit writes everything to tmp, renames it, and returns the final name.
func (s *Store) commit(tmp string, j *job, m *manifest) (name string, err error) {
	if err := s.fs.Mkdir(tmp); err != nil {
		return "", err
	}
	tensors := j.tensors
	for _, f := range j.files {
		if err := s.writeTensors(tmp, f, tensors[:len(f.infos)], m); err != nil {
			return "", err
		}
		tensors = tensors[len(f.infos):]
	}
	entry, err := s.writeFile(tmp, stateName, func(w io.Writer) error {
		_, err := w.Write(j.state)
		return err
	})
	if err != nil {
		return "", err
	}
	m.Files = append(m.Files, entry)
	if err := s.fs.SyncDir(tmp); err != nil {
		return "", err
	}
	text, err := m.encode()
	if err != nil {
		return "", err
	}
	if _, err := s.writeFile(tmp, manifestName, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}); err != nil {
		return "", err
	}
	if err := s.fs.SyncDir(tmp); err != nil {
		return "", err
	}
	if name, err = freeName(s.root, j.step); err != nil {
		return "", err
	}
	if err := s.fs.Rename(tmp, s.path(name)); err != nil {
		return "", err
	}
	return name, s.fs.SyncDir(s.root)
}

// freeName returns step-N, or step-N-2, step-N-3 … for a step that was saved before (for example before a rewind).
// The older one remains until the newer is complete.
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
	if _, err := s.writeFile(s.root, tmp, func(w io.Writer) error {
		_, err := io.WriteString(w, name+"\n")
		return err
	}); err != nil {
		return errors.Join(err, s.fs.RemoveAll(s.path(tmp)))
	}
	if err := s.fs.Rename(s.path(tmp), s.path("latest")); err != nil {
		return errors.Join(err, s.fs.RemoveAll(s.path(tmp)))
	}
	return s.fs.SyncDir(s.root)
}

// writeTensors writes one safetensors file and records it and its tensors in m.
func (s *Store) writeTensors(dir string, f plannedFile, tensors []Tensor, m *manifest) error {
	entry, err := s.writeFile(dir, f.name, func(w io.Writer) error {
		if _, err := w.Write(f.prefix); err != nil {
			return err
		}
		var buffer []byte
		for i, t := range tensors {
			data, err := t.bytes(&buffer)
			if err == nil {
				_, err = w.Write(data)
			}
			if err != nil {
				return fmt.Errorf("tensor %q: %w", t.Name, err)
			}
			m.Tensors[t.Name] = tensorEntry{
				DType: t.DType, Shape: append([]int{}, t.Shape...), File: f.name, Offset: f.infos[i].Offset,
				Size: int64(len(data)), CRC32C: checksum(crc32.Checksum(data, castagnoli)),
			}
		}
		return nil
	})
	m.Files = append(m.Files, entry)
	return err
}

// writeFile creates dir/name, calls fill to write it, syncs it, and returns its size and checksums.
func (s *Store) writeFile(dir, name string, fill func(io.Writer) error) (fileEntry, error) {
	f, err := s.fs.Create(filepath.Join(dir, name))
	if err != nil {
		return fileEntry{}, err
	}
	buffered := bufio.NewWriterSize(f, 64<<10)
	w := &summer{w: buffered, sha: sha256.New()}
	err = fill(w)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fileEntry{}, fmt.Errorf("%s at byte %d: %w", name, w.size, err)
	}
	return w.entry(name), nil
}

// summer passes bytes on and computes the SHA-256 of all and the CRC-32C of every chunk.
type summer struct {
	w    io.Writer
	sha  hash.Hash
	crc  uint32 // of the chunk so far
	sums []checksum
	size int64
}

func (s *summer) Write(p []byte) (int, error) {
	const piece = 256 << 10 // small enough to stay in cache between the two sums
	for rest := p; len(rest) > 0; {
		b := rest[:min(len(rest), piece, chunkBytes-int(s.size%chunkBytes))]
		s.sha.Write(b)
		s.crc = crc32.Update(s.crc, castagnoli, b)
		if _, err := s.w.Write(b); err != nil {
			return len(p) - len(rest), err
		}
		s.size += int64(len(b))
		if s.size%chunkBytes == 0 {
			s.sums, s.crc = append(s.sums, checksum(s.crc)), 0
		}
		rest = rest[len(b):]
	}
	return len(p), nil
}

func (s *summer) entry(name string) fileEntry {
	sums := append([]checksum{}, s.sums...)
	if s.size%chunkBytes != 0 {
		sums = append(sums, checksum(s.crc))
	}
	return fileEntry{Name: name, Size: s.size, SHA256: hex.EncodeToString(s.sha.Sum(nil)), CRC32C: sums}
}
