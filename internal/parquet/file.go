package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrNoColumn is for a file without the column, ErrNoText for a column that does not hold strings.
var (
	ErrNoColumn = errors.New("no such column")
	ErrNoText   = errors.New("the column does not hold strings")
)

const (
	maxFooter = 64 << 20
	maxGroups = 1 << 20
	maxPage   = 256 << 20 // bytes of a page, as it is and decompressed
)

// File is an open parquet file and one of its columns.
type File struct {
	Groups []Group

	r       io.ReaderAt
	size    int64
	maxDef  int // definition level of a value that is not null
	scratch scratch

	taken, given int64 // bytes of the pages so far, compressed and not
}

// Group is the column in one row group.
type Group struct {
	Rows  int64
	Bytes int64 // on disk

	offset int64
	codec  int64
}

// Open reads the footer of a file of size bytes and finds the column: its name, or for one inside structures the names
// of all levels with dots between them.
func Open(r io.ReaderAt, size int64, column string) (*File, error) {
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
		return nil, errors.New("the file is encrypted")
	default:
		return nil, errors.New("the file does not end as a parquet file: it is cut off, or something else")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 || n > maxFooter {
		return nil, fmt.Errorf("the footer claims to have %d bytes", n)
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-8-n); err != nil {
		return nil, err
	}
	f := &File{r: r, size: size}
	leaf, rows, err := -1, int64(-1), error(nil)
	t := thrift{b: footer}
	t.fields(func(id int, kind byte) bool {
		switch {
		case id == 2 && kind == typeList:
			leaf, f.maxDef, err = schema(&t, column)
			return true
		case id == 3 && kind == typeI64:
			rows = t.int()
			return true
		case id == 4 && kind == typeList:
			t.elements(func(int) {
				var g Group
				if g, err = f.group(&t, leaf, err); len(f.Groups) < maxGroups {
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
	if err == nil && (leaf < 0 || rows != 0 || bytes > size) { // more bytes: the same ones over and over
		err = errThrift
	}
	return f, err
}

// namedLeaves is how many columns an error names.
const namedLeaves = 20

// follow returns how much of column is matched when name goes on after the first from bytes, a dot between names: -1 if it does not.
func follow(column string, from int, name string, group bool) int {
	rest, ok := strings.CutPrefix(column[from:], name)
	switch {
	case ok && !group && rest == "":
		return len(column)
	case ok && group && strings.HasPrefix(rest, "."):
		return from + len(name) + 1
	}
	return -1
}

// schema finds the column in the list of a tree's nodes, in depth-first order: its ordinal among the leaves, and how many
// of the nodes above it and itself may be null.
func schema(t *thrift, column string) (leaf, maxDef int, err error) {
	type level struct {
		path     string // of the first leaves alone, which errors name
		matched  int    // bytes of column that the path is the beginning of; -1 if it is of none
		left     int64  // children to come
		def      int
		repeated bool
	}
	var above []level
	var names []string
	leaf, err = -1, ErrNoColumn
	leaves := 0
	t.elements(func(i int) {
		kind, repetition, children, name := int64(-1), int64(0), int64(0), ""
		t.fields(func(id int, k byte) bool {
			switch {
			case id == 1 && k == typeI32:
				kind = t.int()
			case id == 3 && k == typeI32:
				repetition = t.int()
			case id == 4 && k == typeBinary:
				name = string(t.binary())
				name = name[:min(len(name), 1000)]
			case id == 5 && k == typeI32:
				children = t.int()
			default:
				return false
			}
			return true
		})
		at := level{left: children}
		if i > 0 {
			if len(above) == 0 {
				t.fail(errThrift)
				return
			}
			parent := &above[len(above)-1]
			parent.left--
			at.def, at.repeated = parent.def, parent.repeated || repetition == 2
			if len(names) < namedLeaves {
				at.path = strings.TrimPrefix(parent.path+"."+name, ".")
			}
			at.matched = -1
			if parent.matched >= 0 {
				at.matched = follow(column, parent.matched, name, children > 0)
			}
			if repetition != 0 {
				at.def++
			}
		}
		if children > 0 {
			if len(above) >= maxDepth || children > 1<<20 {
				t.fail(errThrift)
			}
			above = append(above, at)
			return
		}
		if at.matched == len(column) && i > 0 && leaf < 0 {
			leaf, maxDef, err = leaves, at.def, nil
			if at.repeated {
				err = fmt.Errorf("%w: %s is in a list", ErrNoText, column)
			} else if kind != 6 { // BYTE_ARRAY
				err = fmt.Errorf("%w: %s is of another type", ErrNoText, column)
			}
		}
		if len(names) < namedLeaves {
			names = append(names, at.path)
		}
		leaves++
		for len(above) > 0 && above[len(above)-1].left <= 0 {
			above = above[:len(above)-1]
		}
	})
	if err == ErrNoColumn {
		err = fmt.Errorf("%w: the columns are %.400s", err, strings.Join(names, ", "))
	}
	return leaf, maxDef, err
}

// group reads a row group. The first fault of the file stays.
func (f *File) group(t *thrift, leaf int, err error) (Group, error) {
	g := Group{Rows: -1, codec: -1, Bytes: -1, offset: -1}
	dictionary := int64(-1)
	t.fields(func(id int, kind byte) bool {
		switch {
		case id == 3 && kind == typeI64:
			g.Rows = t.int()
		case id == 1 && kind == typeList:
			t.elements(func(i int) {
				t.fields(func(id int, kind byte) bool {
					if i != leaf {
						return false
					}
					switch {
					case id == 1 && kind == typeBinary:
						if path := t.binary(); len(path) > 0 && err == nil {
							err = errors.New("the column is in another file")
						}
					case id == 8 && kind == typeStruct && err == nil:
						err = errors.New("the column is encrypted")
						return false
					case id == 3 && kind == typeStruct:
						t.fields(func(id int, kind byte) bool {
							switch {
							case id == 4 && kind == typeI32:
								g.codec = t.int()
							case id == 7 && kind == typeI64:
								g.Bytes = t.int()
							case id == 9 && kind == typeI64:
								g.offset = t.int()
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
			})
		default:
			return false
		}
		return true
	})
	if g.Rows == 0 { // an empty table: what its chunks say of offsets differs from writer to writer
		return Group{codec: g.codec}, err
	}
	if dictionary > 0 && dictionary < g.offset {
		g.offset = dictionary
	}
	if err == nil && (g.Rows < 0 || g.Rows > 1<<40 || g.offset < 4 || g.Bytes < 0 || g.Bytes > f.size || g.offset > f.size-g.Bytes) {
		err = errThrift
	}
	return g, err
}
