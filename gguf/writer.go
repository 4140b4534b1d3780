package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"reflect"

	"anneal/internal/fileio"
)

// KV is an entry of the metadata. Value is a uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32,
// float64, bool or string, or a slice of these.
type KV struct {
	Key   string
	Value any
}

// Tensor is one tensor to write. Shape has the length of rows last, as in [out, in]; files have it first. Data must
// read as exactly the bytes of the type, and is read once.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int
	Data  io.Reader
}

// alignment of tensors, in bytes: the default of the format.
const alignment = 32

// Write writes a whole file to w. Before it writes, it checks its arguments by the rules of the reader.
func Write(w io.Writer, metadata []KV, tensors []Tensor) error {
	head, sizes, err := prologue(metadata, tensors)
	if err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for i, t := range tensors {
		if t.Data == nil {
			return fmt.Errorf("gguf: tensor %q has no Data", t.Name)
		}
		n, err := io.Copy(w, t.Data)
		if err != nil {
			return fmt.Errorf("gguf: tensor %q: %w", t.Name, err)
		}
		if n != sizes[i] {
			return fmt.Errorf("gguf: tensor %q wrote %d bytes, but %v %v needs %d",
				t.Name, n, t.Type, t.Shape, sizes[i])
		}
		if _, err := w.Write(make([]byte, padding(n))); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes a file that gets the name path only when it is complete, has passed the checks, which read it, and
// is on disk.
func WriteFile(path string, metadata []KV, tensors []Tensor, checks ...func(*File) error) error {
	return fileio.Write(path, func(out io.Writer) error {
		w := bufio.NewWriterSize(out, 1<<20)
		if err := Write(w, metadata, tensors); err != nil {
			return err
		}
		if err := w.Flush(); err != nil || len(checks) == 0 {
			return err
		}
		written, err := Open(out.(*os.File).Name())
		if err != nil {
			return err
		}
		defer written.Close()
		for _, check := range checks {
			if err := check(written); err != nil {
				return err
			}
		}
		return nil
	})
}

// padding returns the number of bytes from n to the next multiple of the alignment.
func padding(n int64) int64 { return -n & (alignment - 1) }

// prologue returns the bytes before the data, and the size of each tensor.
func prologue(metadata []KV, tensors []Tensor) (b []byte, sizes []int64, err error) {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(metadata)))
	for _, kv := range metadata {
		b = appendString(b, kv.Key)
		if b, err = appendValue(b, kv.Value); err != nil {
			return nil, nil, fmt.Errorf("metadata %q: %w", kv.Key, err)
		}
	}
	at := int64(0)
	for _, t := range tensors {
		size, err := t.Type.ByteSize(t.Shape)
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		b = appendString(b, t.Name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.Shape)))
		for i := range t.Shape {
			b = binary.LittleEndian.AppendUint64(b, uint64(t.Shape[len(t.Shape)-1-i]))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Type))
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
		sizes = append(sizes, size)
		if at += size + padding(size); at < 0 {
			return nil, nil, fmt.Errorf("the tensors are too large in total")
		}
	}
	b = append(b, make([]byte, padding(int64(len(b))))...)
	if _, err := parse(prefix(b), int64(len(b))+at); err != nil { // names, limits, repetitions
		return nil, nil, err
	}
	return b, sizes, nil
}

// prefix is the part of a file before the data.
type prefix []byte

// ReadAt implements io.ReaderAt.
func (p prefix) ReadAt(b []byte, off int64) (int, error) {
	if off >= int64(len(p)) {
		return 0, io.EOF
	}
	n := copy(b, p[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends a value with its type before it.
func appendValue(b []byte, value any) ([]byte, error) {
	v := reflect.ValueOf(value)
	k, list := kindOf(v)
	if k < 0 {
		return nil, fmt.Errorf("a value of type %T", value)
	}
	if list {
		b = binary.LittleEndian.AppendUint32(b, uint32(kindArray))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(k))
	if list {
		b = binary.LittleEndian.AppendUint64(b, uint64(v.Len()))
	}
	switch x := value.(type) {
	case string:
		return appendString(b, x), nil
	case []string:
		for _, s := range x {
			b = appendString(b, s)
		}
		return b, nil
	}
	return binary.Append(b, binary.LittleEndian, value)
}
