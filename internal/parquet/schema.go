package parquet

import (
	"fmt"
	"strings"
)

// Repetitions of an element.
const (
	required = 0
	optional = 1
	repeated = 2
)

// element is a node of the schema as the footer lists it.
type element struct {
	name       string
	physical   int64 // type; -1 of a group
	length     int64 // bytes of FIXED_LEN_BYTE_ARRAY
	repetition int64
	children   int64
	converted  int64 // ConvertedType, the older annotation of the values; -1 if absent
	logical    int64 // the field of the union LogicalType, the newer annotation; 0 if absent
	scale      int64 // of a decimal
	precision  int64
	unit       int64 // of a time: 1 milliseconds, 2 microseconds, 3 nanoseconds
	utc        bool  // a timestamp is an instant
	unsigned   bool
}

// maxName is the longest name of a field.
const maxName = 1000

func readElement(t *thrift) element {
	e := element{physical: -1, converted: -1}
	t.fields(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == typeI32:
			e.physical = t.int()
		case id == 2 && kind == typeI32:
			e.length = t.int()
		case id == 3 && kind == typeI32:
			e.repetition = t.int()
		case id == 4 && kind == typeBinary:
			name := t.binary()
			e.name = string(name[:min(len(name), maxName)])
		case id == 5 && kind == typeI32:
			e.children = t.int()
		case id == 6 && kind == typeI32:
			e.converted = t.int()
		case id == 7 && kind == typeI32:
			e.scale = t.int()
		case id == 8 && kind == typeI32:
			e.precision = t.int()
		case id == 10 && kind == typeStruct:
			t.fields(e.readLogical(t))
		default:
			return false
		}
		return true
	})
	return e
}

// readLogical reads the union LogicalType, in which one field is set.
func (e *element) readLogical(t *thrift) func(id int, kind byte) bool {
	return func(id int, kind byte) bool {
		e.logical = int64(id)
		if kind != typeStruct {
			return false
		}
		t.fields(func(field int, kind byte) bool {
			switch {
			case id == logicalDecimal && field == 1 && kind == typeI32:
				e.scale = t.int()
			case id == logicalDecimal && field == 2 && kind == typeI32:
				e.precision = t.int()
			case (id == logicalTime || id == logicalTimestamp) && field == 1 && (kind == typeTrue || kind == typeFalse):
				e.utc = kind == typeTrue
			case (id == logicalTime || id == logicalTimestamp) && field == 2 && kind == typeStruct:
				t.fields(func(unit int, _ byte) bool {
					e.unit = int64(unit)
					return false
				})
			case id == logicalInteger && field == 2 && (kind == typeTrue || kind == typeFalse):
				e.unsigned = kind == typeFalse
			default:
				return false
			}
			return true
		})
		return true
	}
}

// namedLeaves is the number of columns that an error names.
const namedLeaves = 20

// follow extends a match of the first from bytes of column by name, with a dot between names. It returns the bytes
// matched, or -1 if name does not match.
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

// schema finds the column in the list of a tree's nodes, in depth-first order: its ordinal among the leaves, and how
// many of the nodes above it and itself may be null.
func schema(t *thrift, column string) (leaf, maxDef int, err error) {
	type level struct {
		path     string // set only for the first leaves, which errors name
		matched  int    // bytes of column that the path matches; -1 if it does not match
		left     int64  // children left to read
		def      int
		repeated bool
	}
	var above []level
	var names []string
	leaf, err = -1, ErrNoColumn
	leaves := 0
	t.elements(func(i int) {
		e := readElement(t)
		at := level{left: e.children}
		if i > 0 {
			if len(above) == 0 {
				t.fail(errThrift)
				return
			}
			parent := &above[len(above)-1]
			parent.left--
			at.def, at.repeated = parent.def, parent.repeated || e.repetition == repeated
			if len(names) < namedLeaves {
				at.path = strings.TrimPrefix(parent.path+"."+e.name, ".")
			}
			at.matched = -1
			if parent.matched >= 0 {
				at.matched = follow(column, parent.matched, e.name, e.children > 0)
			}
			if e.repetition != required {
				at.def++
			}
		}
		if e.children > 0 {
			if len(above) >= maxDepth || e.children > 1<<20 {
				t.fail(errThrift)
			}
			above = append(above, at)
			return
		}
		if at.matched == len(column) && i > 0 && leaf < 0 {
			leaf, maxDef, err = leaves, at.def, nil
			if at.repeated {
				err = fmt.Errorf("%w: %s is in a list", ErrNoText, column)
			} else if e.physical != typeByteArray {
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
