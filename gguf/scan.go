package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
)

// scanner reads the numbers and strings of a header. It keeps the first error, and everything read after it is zero.
// It never allocates memory for bytes that the file does not have.
type scanner struct {
	r    *bufio.Reader
	at   int64
	size int64 // of the file
	err  error
}

func newScanner(r io.ReaderAt, size int64) *scanner {
	return &scanner{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 16<<10), size: size}
}

// fail returns an error with the place in the file.
func (z *scanner) fail(format string, args ...any) error {
	return fmt.Errorf("byte %d: %w", z.at, fmt.Errorf(format, args...))
}

// claim reports whether n elements of width bytes can be left in the header.
func (z *scanner) claim(n uint64, width int64) bool {
	left := min(z.size, maxHeader) - z.at
	if z.err == nil && n > uint64(left/width) {
		z.err = z.fail("%d × %d bytes, but %d are left (the limit of a header is %d)", n, width, left, int64(maxHeader))
	}
	return z.err == nil
}

// bytes reads n bytes; the caller has claimed them, or n is small.
func (z *scanner) bytes(n int) []byte {
	if !z.claim(uint64(n), 1) {
		return make([]byte, min(n, 8))
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(z.r, b); err != nil {
		z.err = z.fail("%w", err)
	}
	z.at += int64(n)
	return b
}

func (z *scanner) uint32() uint32 { return binary.LittleEndian.Uint32(z.bytes(4)) }
func (z *scanner) uint64() uint64 { return binary.LittleEndian.Uint64(z.bytes(8)) }

// string reads a string of at most limit bytes.
func (z *scanner) string(limit uint64) string {
	n := z.uint64()
	if z.err == nil && n > limit {
		z.err = z.fail("a string of %d bytes, the limit is %d", n, limit)
	}
	if !z.claim(n, 1) {
		return ""
	}
	return string(z.bytes(int(n)))
}

// value reads one value of a type.
func (z *scanner) value(t reflect.Type) any {
	switch {
	case z.err != nil:
		return nil
	case t.Kind() == reflect.String:
		return z.string(maxHeader)
	}
	v := reflect.New(t)
	z.decode(int(t.Size()), v.Interface())
	return v.Elem().Interface()
}

// list reads a counted list of values of a type.
func (z *scanner) list(t reflect.Type) any {
	n := z.uint64()
	if z.err != nil {
		return nil
	}
	if t.Kind() == reflect.String {
		if !z.claim(n, 8) { // each has its length
			return nil
		}
		var list []string
		for range n {
			list = append(list, z.string(maxHeader))
			if z.err != nil {
				return nil
			}
		}
		return list
	}
	if !z.claim(n, int64(t.Size())) {
		return nil
	}
	list := reflect.MakeSlice(reflect.SliceOf(t), int(n), int(n))
	z.decode(int(n)*int(t.Size()), list.Interface())
	return list.Interface()
}

// decode reads n bytes into a pointer to a number or a list of numbers.
func (z *scanner) decode(n int, into any) {
	b := z.bytes(n)
	if z.err != nil {
		return
	}
	if _, err := binary.Decode(b, binary.LittleEndian, into); err != nil {
		z.err = z.fail("%w", err)
	}
}
