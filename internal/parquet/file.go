package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrNoColumn is for a file without the column, ErrNoText for a column that does not hold strings.
var (
	ErrNoColumn = errors.New("no such column")
	ErrNoText   = errors.New("the column does not hold strings")
)

const (
	maxFooter = 64 << 20
	maxGroups = 1 << 20
	maxPage   = 256 << 20 // bytes of a page, compressed or decompressed
)

// File is an open parquet file with its columns: the text and, on request, the others.
type File struct {
	Groups []Group

	r      io.ReaderAt
	size   int64
	footer []byte
	maxDef int // definition level of a text that is not null
	text   pages
	fields *fields // the other columns; nil if not requested
	codecs codecs

	taken, given int64 // bytes of the pages so far, compressed and decompressed
}

// Group is the text in one row group.
type Group struct {
	Rows  int64
	Bytes int64 // on disk

	chunk
	at int // offset in the footer of the group's description
}

// Open reads the footer of a file of size bytes and finds the column of the text by its name, or inside structures by
// the names of all levels with dots between them. If others is true, Rows also reads the other columns, except those in
// Left.
func Open(r io.ReaderAt, size int64, column string, others bool) (*File, error) {
	return open(r, size, column, others)
}

// OpenFields reads the footer of a file of size bytes without a column of text: Rows reads all columns, except those
// in Left. Values must not be called.
func OpenFields(r io.ReaderAt, size int64) (*File, error) { return open(r, size, "", true) }

// open implements Open; if column is "", there is no text.
func open(r io.ReaderAt, size int64, column string, others bool) (*File, error) {
	if size < 12 {
		return nil, errors.New("too short for a parquet file")
	}
	var tail [8]byte
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case "PAR1":
	case "PARE":
		return nil, fmt.Errorf("%w: the file is encrypted", ErrUnsupported)
	default:
		return nil, errors.New("the file does not end like a parquet file: it is truncated, or another format")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 || n > maxFooter {
		return nil, fmt.Errorf("the footer claims to have %d bytes", n)
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-8-n); err != nil {
		return nil, err
	}
	f := &File{r: r, size: size, footer: footer}
	leaf, rows, err := -1, int64(-1), error(nil)
	t := thrift{b: footer}
	t.fields(func(id int, kind byte) bool {
		switch {
		case id == 2 && kind == typeList:
			start := t
			if leaf, f.maxDef, err = schema(&t, column); column == "" {
				leaf, err = -1, nil
			}
			if others && t.err == nil && err == nil {
				f.fields = readTree(&start, leaf)
			}
			return true
		case id == 3 && kind == typeI64:
			rows = t.int()
			return true
		case id == 4 && kind == typeList:
			if others && err == nil && f.fields == nil { // survey needs the schema
				t.fail(errThrift)
				return true
			}
			t.elements(func(int) {
				var g Group
				if g, err = f.group(&t, leaf, err); f.fields != nil && err == nil {
					err = f.fields.survey(f, g)
				}
				if len(f.Groups) < maxGroups {
					f.Groups = append(f.Groups, g)
				} else {
					t.fail(errors.New("too many row groups"))
				}
			})
			return true
		}
		return false
	})
	if t.err != nil {
		return nil, t.err
	}
	var bytes int64
	for _, g := range f.Groups {
		rows -= g.Rows
		bytes += g.Bytes
	}
	missing := leaf < 0 && column != "" || others && f.fields == nil
	if err == nil && (missing || rows != 0 || bytes > size) { // more bytes than the file: row groups share them
		err = errThrift
	}
	if err == nil && f.fields != nil {
		err = f.fields.settle(size)
	}
	return f, err
}

// Left are the columns that Rows does not deliver.
func (f *File) Left() []Left {
	if f.fields == nil {
		return nil
	}
	return f.fields.left
}

// group reads a row group. The first fault of the file stays.
func (f *File) group(t *thrift, leaf int, err error) (Group, error) {
	g := Group{Rows: -1, at: t.i}
	c := chunk{codec: -1, bytes: -1, offset: -1}
	t.fields(func(id int, kind byte) bool {
		switch {
		case id == 3 && kind == typeI64:
			g.Rows = t.int()
		case id == 1 && kind == typeList:
			t.elements(func(i int) {
				if i != leaf {
					t.structure(0, nil)
					return
				}
				var fault error
				if c, _, fault = readChunk(t); err == nil {
					err = fault
				}
			})
		default:
			return false
		}
		return true
	})
	if g.Rows == 0 { // an empty table: the offsets of its chunks differ between writers
		return Group{chunk: chunk{codec: c.codec}, at: g.at}, err
	}
	if err == nil && (g.Rows < 0 || g.Rows > 1<<40 || leaf >= 0 && !c.within(f.size)) {
		err = errThrift
	}
	if leaf < 0 {
		return Group{Rows: g.Rows, at: g.at}, err
	}
	g.chunk, g.Bytes = c, c.bytes
	return g, err
}

// within reports whether the offsets of a chunk lie within the file.
func (c chunk) within(size int64) bool {
	return c.offset >= 4 && c.bytes >= 0 && c.bytes <= size && c.offset <= size-c.bytes
}

// readChunk reads the footer's description of a column in a row group; encodings is the set of its pages' encodings.
func readChunk(t *thrift) (c chunk, encodings uint32, err error) {
	c = chunk{codec: -1, bytes: -1, offset: -1}
	dictionary := int64(-1)
	t.fields(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == typeBinary:
			if path := t.binary(); len(path) > 0 && err == nil {
				err = fmt.Errorf("%w: the column is in another file", ErrUnsupported)
			}
		case id == 8 && kind == typeStruct:
			if err == nil {
				err = fmt.Errorf("%w: the column is encrypted", ErrUnsupported)
			}
			return false
		case id == 3 && kind == typeStruct:
			t.fields(func(id int, kind byte) bool {
				switch {
				case id == 2 && kind == typeList:
					t.integers(func(v int64) {
						if v >= 0 && v < 32 {
							encodings |= 1 << v
						}
					})
				case id == 4 && kind == typeI32:
					c.codec = t.int()
				case id == 7 && kind == typeI64:
					c.bytes = t.int()
				case id == 9 && kind == typeI64:
					c.offset = t.int()
				case id == 11 && kind == typeI64:
					dictionary = t.int()
				default:
					return false
				}
				return true
			})
		default:
			return false
		}
		return true
	})
	if dictionary > 0 && dictionary < c.offset {
		c.offset = dictionary
	}
	return c, encodings, err
}
