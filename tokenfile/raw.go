package tokenfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// bufferBytes is the size of read and write buffers.
const bufferBytes = 1 << 20

// rawWriter writes ids as little-endian numbers of width bytes.
type rawWriter struct {
	f      *os.File
	w      *bufio.Writer
	width  int
	tokens uint64
	buf    []byte
}

func createRaw(path string, width int) (*rawWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &rawWriter{f: f, w: bufio.NewWriterSize(f, bufferBytes), width: width}, nil
}

// write appends ids. It returns write errors of the file, which close returns again.
func (w *rawWriter) write(ids ...uint32) error {
	w.buf = w.buf[:0]
	for _, id := range ids {
		if w.width == 2 {
			w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(id))
		} else {
			w.buf = binary.LittleEndian.AppendUint32(w.buf, id)
		}
	}
	w.tokens += uint64(len(ids))
	_, err := w.w.Write(w.buf)
	return err
}

func (w *rawWriter) close() error { return errors.Join(w.w.Flush(), w.f.Sync(), w.f.Close()) }

// readRaw passes on the ids from here to the end of r, numbers of width bytes: count of them, or all if count is
// negative.
func readRaw(r io.Reader, width int, count int64, d *documents) error {
	if d.buf == nil {
		d.buf, d.ids = make([]byte, bufferBytes), make([]uint32, bufferBytes/2)
	}
	buf, at := d.buf, uint64(0)
	for count != 0 {
		want := buf
		if n := count * int64(width); count > 0 && n < int64(len(buf)) {
			want = buf[:n]
		}
		n, err := io.ReadFull(r, want)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		if err != nil && count > 0 {
			return fmt.Errorf("the file ends after %d tokens, but its header says %d\n  restore it from a copy",
				at+uint64(n/width), at+uint64(count))
		}
		if n%width != 0 {
			return fmt.Errorf("%d extra bytes after the last token of %d bytes\n"+
				"  pass the tokenizer that the file was made with, or restore the file from a copy", n%width, width)
		}
		ids := d.ids[:n/width]
		for i := range ids {
			if width == 2 {
				ids[i] = uint32(binary.LittleEndian.Uint16(buf[2*i:]))
			} else {
				ids[i] = binary.LittleEndian.Uint32(buf[4*i:])
			}
		}
		if err := d.stream(ids, at); err != nil {
			return err
		}
		at += uint64(len(ids))
		if err != nil {
			return nil
		}
		if count > 0 {
			count -= int64(len(ids))
		}
	}
	return nil
}
