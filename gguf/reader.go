package gguf

import (
	"fmt"
	"io"

	"anneal/internal/fileio"
)

// File is an open GGUF file. Its methods may be called from several goroutines.
type File struct {
	r      io.ReaderAt
	closer io.Closer
	header *header
	byName map[string]int
}

// Open opens and checks the file at path. It reads only the part before the data.
func Open(path string) (*File, error) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	g, err := NewFile(f, st.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	g.closer = f
	return g, nil
}

// NewFile checks the header of a GGUF file of size bytes in r. It allocates at most a small multiple of the existing
// header.
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	h, err := parse(r, size)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f := &File{r: r, header: h, byName: make(map[string]int, len(h.tensors))}
	for i, t := range h.tensors {
		f.byName[t.Name] = i
	}
	return f, nil
}

func parse(r io.ReaderAt, size int64) (*header, error) { return newScanner(r, size).header() }

// Metadata lists the entries in the order of the file. The caller must not modify the slice.
func (f *File) Metadata() []KV { return f.header.metadata }

// Tensors lists the tensors in the order of the file. The caller must not modify the slice.
func (f *File) Tensors() []Info { return f.header.tensors }

// Lookup finds a tensor by name.
func (f *File) Lookup(name string) (Info, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Info{}, false
	}
	return f.header.tensors[i], true
}

// ReadAt fills p with the bytes of a tensor from byte off on. It reads all of p or fails.
func (f *File) ReadAt(name string, p []byte, off int64) error {
	t, ok := f.Lookup(name)
	if !ok {
		return fmt.Errorf("gguf: no tensor %q", name)
	}
	if off < 0 || off > t.Size || int64(len(p)) > t.Size-off {
		return fmt.Errorf("gguf: tensor %q has %d bytes: cannot read %d from byte %d on", name, t.Size, len(p), off)
	}
	if n, err := f.r.ReadAt(p, t.Offset+off); n < len(p) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("gguf: tensor %q at file offset %d: %w", name, t.Offset+off, err)
	}
	return nil
}

// Close closes a file opened with Open. A caller's ReaderAt stays open.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}
