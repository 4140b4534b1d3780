package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"

	"anneal/internal/fileio"
)

// File is an open safetensors file. Its methods may be called from several goroutines.
type File struct {
	r      io.ReaderAt
	closer io.Closer
	header *header
	byName map[string]int
}

// Open opens and checks the file at path. It reads only the header.
func Open(path string) (*File, error) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	return openFile(f)
}

// regular rejects everything except regular files, before it is opened in an os.Root: opening a pipe would wait for a
// writer.
func regular(st fs.FileInfo, err error) error {
	if err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", st.Name())
	}
	return err
}

// openFile takes ownership of f and closes it on error.
func openFile(f *os.File) (*File, error) {
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	s, err := NewFile(f, st.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	s.closer = f
	return s, nil
}

// NewFile checks the header of a safetensors file of size bytes in r. It allocates at most a small multiple of the
// existing header.
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	var prefix [8]byte
	if size < int64(len(prefix)) {
		return nil, fmt.Errorf("safetensors: a file of %d bytes is too short for a header", size)
	}
	if err := readFull(r, prefix[:], 0); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > MaxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("safetensors: header of %d bytes in a file of %d (the limit is %d)", n, size, MaxHeader)
	}
	text := make([]byte, n)
	if err := readFull(r, text, 8); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	h, err := parseHeader(text, 8+int64(n), size)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f := &File{r: r, header: h, byName: make(map[string]int, len(h.tensors))}
	for i, t := range h.tensors {
		f.byName[t.Name] = i
	}
	return f, nil
}

// Tensors lists the tensors in file order. The caller must not modify the slice.
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
		return fmt.Errorf("safetensors: no tensor %q", name)
	}
	if off < 0 || off > t.Size || int64(len(p)) > t.Size-off {
		return fmt.Errorf("safetensors: tensor %q has %d bytes: cannot read %d from byte %d on",
			name, t.Size, len(p), off)
	}
	if err := readFull(f.r, p, t.Offset+off); err != nil {
		return fmt.Errorf("safetensors: tensor %q at file offset %d: %w", name, t.Offset+off, err)
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

// readFull is ReadAt, but a full read never returns EOF, and a short read returns ErrUnexpectedEOF.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
