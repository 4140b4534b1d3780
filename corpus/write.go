package corpus

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

// LongestLine is the length of the longest line, without its end, that a Reader takes if Options.MaxLine is 0.
const LongestLine = 16 << 20

// ErrLongOutput says that the Line of a document is longer than LongestLine, so that a Reader would lose it.
var ErrLongOutput = errors.New(string(LongOutput))

// LongOutput returns the Reject of a document for which there is ErrLongOutput.
func (d Document) LongOutput() Reject {
	return Reject{Source: d.Source, Offset: d.Offset, Reason: LongOutput, Documents: 1, Bytes: int64(len(d.Text))}
}

// Writer writes documents as zstd-compressed JSON lines, docs-00000.jsonl.zst and so on, which a Reader reads back
// byte for byte. Each line is a Line with the fields of the document, its text, its source, and its offset and index
// in the source. Bytes of texts and fields that are not UTF-8 stay as they are.
type Writer struct {
	dir    string
	most   int64 // bytes of text in a file
	files  int
	inFile int64
	f      *LineFile
	place  []byte
	line   []byte
}

// NewWriter writes into the directory dir, which must exist, files of about most bytes of text (256 MiB if it is 0).
func NewWriter(dir string, most int64) *Writer {
	if most <= 0 {
		most = 256 << 20
	}
	return &Writer{dir: dir, most: most}
}

// Write adds a document. It returns ErrLongOutput, and adds nothing, if the line would be too long.
func (w *Writer) Write(d Document) error {
	if w.f != nil && w.inFile >= w.most {
		if err := w.Close(); err != nil {
			return err
		}
	}
	if w.f == nil {
		if err := w.next(); err != nil {
			return err
		}
	}
	w.place = AppendPlace(w.place[:0], d.Source, d.Offset)
	w.place = strconv.AppendInt(append(w.place, `,"index":`...), int64(d.Index), 10)
	if len(d.Moved) > 0 {
		w.place = append(append(w.place, ','), d.Moved...)
	}
	l := Line{Text: d.Text, Fields: d.Fields, Place: w.place}
	if w.line = l.Append(w.line[:0]); len(w.line) > LongestLine+1 {
		return ErrLongOutput
	}
	w.inFile += int64(len(d.Text))
	_, err := w.f.Write(w.line)
	return w.wrap(err)
}

func (w *Writer) next() (err error) {
	if w.f, err = CreateLines(filepath.Join(w.dir, writtenName(w.files))); err != nil {
		return w.wrap(err)
	}
	w.files++
	w.inFile = 0
	return nil
}

// writtenName is the name of file n of a Writer.
func writtenName(n int) string { return fmt.Sprintf("docs-%05d.jsonl.zst", n) }

// Close ends the file being written and syncs it. A Write after it starts another.
func (w *Writer) Close() error {
	if w.f == nil {
		return nil
	}
	_, _, err := w.f.Commit()
	w.f = nil
	return w.wrap(err)
}

func (w *Writer) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write documents to %s: %w", w.dir, err)
}

// AppendString appends s as a JSON string (RFC 8259). It escapes only what it must; bytes that are not UTF-8 pass
// unchanged.
func AppendString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for {
		n := plainBytes(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		c := s[n]
		s = s[n+1:]
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
}
