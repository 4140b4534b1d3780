package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"anneal/internal/fileio"
	"anneal/safetensors"
)

// part is one writer's part of a checkpoint. Its tensors are grouped by file, in file order.
type part struct {
	tensors []Tensor
	files   []plannedFile
}

type plannedFile struct {
	name   string
	prefix []byte             // safetensors header
	infos  []safetensors.Info // parallel to the tensors of the file, which follow those of the previous file
}

// plan distributes tensors over files; the names of the files contain suffix. It leaves out regions without elements,
// unless the tensor itself has none.
func plan(tensors []Tensor, suffix string) (*part, error) {
	p := &part{}
	for _, kind := range []string{modelKind, optimKind, averageKind} {
		var infos []safetensors.Info
		byName := map[string]Tensor{}
		for _, t := range tensors {
			if t.kind() != kind {
				continue
			}
			if whole, err := (Region{}).span(t.DType, t.Shape); err == nil && t.Bytes() == 0 && whole.size() > 0 {
				continue
			}
			t.Region = t.Region.plain(t.Shape)
			name, shape := t.Region.header(t.Name, t.Shape)
			infos = append(infos, safetensors.Info{Name: name, DType: safetensors.DType(t.DType), Shape: shape})
			byName[name] = t
		}
		if len(infos) == 0 {
			continue
		}
		prefix, order, err := safetensors.Layout(infos, nil)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, plannedFile{kind + suffix + ".safetensors", prefix, order})
		for _, info := range order {
			p.tensors = append(p.tensors, byName[info.Name])
		}
	}
	return p, nil
}

func (p *part) bytes() (n int64) {
	for _, t := range p.tensors {
		n += t.Bytes()
	}
	return n
}

// snapshot moves the tensors from live memory into the room. It copies tensors that are volatile or in a device's
// memory at once, and returns a function that copies the others.
func (p *part) snapshot(room *room) (others func(), err error) {
	rest, err := room.take(int(p.bytes()))
	if err != nil {
		return nil, err
	}
	var live, copies [][]byte
	for i := range p.tensors {
		t := &p.tensors[i]
		n := t.Bytes()
		place := rest[:n:n]
		switch {
		case t.Remote != nil:
			if err := t.Remote.Read(place); err != nil {
				return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
			}
		case t.Volatile:
			copy(place, t.Data)
		default:
			live, copies = append(live, t.Data), append(copies, place)
		}
		t.Data, t.Remote, rest = place, nil, rest[n:]
	}
	return func() {
		for i := range live {
			copyAll(copies[i], live[i])
		}
	}, nil
}

// copyAll copies in small pieces. The goroutine cannot be preempted during a copy, so a large one would delay the
// garbage collector, and all goroutines would wait for it.
func copyAll(dst, src []byte) {
	const piece = 1 << 20
	for n := 0; len(src) > 0; dst, src = dst[n:], src[n:] {
		n = copy(dst, src[:min(piece, len(src))])
	}
}

// write writes the files of the part and returns its part of the manifest.
func (p *part) write(fs filesystem, dir string) (*manifest, error) {
	m := newManifest()
	tensors := p.tensors
	for _, f := range p.files {
		if err := f.write(fs, dir, tensors[:len(f.infos)], m); err != nil {
			return nil, err
		}
		tensors = tensors[len(f.infos):]
	}
	return m, nil
}

// write writes one safetensors file and records it and its tensors in m.
func (f *plannedFile) write(fs filesystem, dir string, tensors []Tensor, m *manifest) error {
	entry, err := writeFile(fs, dir, f.name, func(w io.Writer) error {
		if _, err := w.Write(f.prefix); err != nil {
			return err
		}
		var buffer []byte
		for i, t := range tensors {
			data, err := t.bytes(&buffer)
			if err == nil {
				_, err = w.Write(data)
			}
			if err == nil {
				at := place{f.name, f.infos[i].Offset, int64(len(data)), checksum(crc32.Checksum(data, castagnoli))}
				err = m.add(t.Name, tensorEntry{DType: t.DType, Shape: append([]int{}, t.Shape...),
					Pieces: []piece{{at, t.Region}}})
			}
			if err != nil {
				return fmt.Errorf("tensor %q: %w", t.Name, err)
			}
		}
		return nil
	})
	m.Files = append(m.Files, entry)
	return err
}

// add adds the pieces of a tensor.
func (m *manifest) add(name string, t tensorEntry) error {
	have, ok := m.Tensors[name]
	if ok && (have.DType != t.DType || !slices.Equal(have.Shape, t.Shape)) {
		return fmt.Errorf("it is %s %v in %v, but %s %v in %v",
			have.DType, have.Shape, &have.Pieces[0], t.DType, t.Shape, &t.Pieces[0])
	}
	t.Pieces = append(have.Pieces, t.Pieces...)
	m.Tensors[name] = t
	return nil
}

// readBack returns an error unless the files of all writers have arrived in this process's view of the directory:
// their sizes, headers, and first and last chunks. On a network file system this shows whether all writers use the
// same directory.
func (m *manifest) readBack(dir string) error {
	if err := m.place(); err != nil {
		return err
	}
	r := &reader{dir: dir, name: filepath.Base(dir), m: m, chunk: make([]byte, min(chunkBytes, m.bytes()))}
	for _, f := range m.Files {
		ends := func(begin, end int64) bool { return begin == 0 || end == f.Size }
		err := r.read(f, ends, func(int64, []byte) {})
		if err == nil {
			err = r.checkHeader(f)
		}
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			return fmt.Errorf("%s is not here as it was written: %w", f.Name, fault.Err)
		}
	}
	return nil
}

// partName returns the name of the file with a writer's part of the manifest.
func partName(number int) string { return fmt.Sprintf("part-%05d.json", number) }

// collect reads the part files of all writers in a directory, removes them, and returns the joined manifest.
func collect(fsys filesystem, dir string, writers int) (*manifest, error) {
	m := newManifest()
	for i := range writers {
		path := filepath.Join(dir, partName(i))
		text, err := fileio.ReadSmall(path, maxManifest)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the part of writer %d of %d is missing: %w", i, writers, err)
		}
		if err != nil {
			return nil, err
		}
		part, err := parseManifest(text)
		if err != nil {
			return nil, fmt.Errorf("the part of writer %d: %w", i, err)
		}
		m.Files = append(m.Files, part.Files...)
		for name, t := range part.Tensors {
			if err := m.add(name, t); err != nil {
				return nil, fmt.Errorf("tensor %q: %w", name, err)
			}
		}
		if err := fsys.Remove(path); err != nil {
			return nil, err
		}
	}
	return m, nil
}
