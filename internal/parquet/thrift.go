package parquet

import "errors"

var (
	errShort  = errors.New("the metadata is truncated")
	errThrift = errors.New("the metadata is damaged")
)

// Types of the compact protocol of Thrift.
const (
	typeTrue   = 1
	typeFalse  = 2
	typeByte   = 3
	typeI16    = 4
	typeI32    = 5
	typeI64    = 6
	typeDouble = 7
	typeBinary = 8
	typeList   = 9
	typeSet    = 10
	typeMap    = 11
	typeStruct = 12
)

// thrift reads the compact protocol. After a fault, err is set and all values read are zero or empty.
type thrift struct {
	b   []byte
	i   int
	err error
}

// maxDepth is how deep structures may nest; parquet's structures have five levels.
const maxDepth = 16

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.i = len(t.b)
}

func (t *thrift) byte() byte {
	if t.i >= len(t.b) {
		t.fail(errShort)
		return 0
	}
	t.i++
	return t.b[t.i-1]
}

func (t *thrift) varint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		c := t.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	t.fail(errThrift)
	return 0
}

func (t *thrift) int() int64 {
	v := t.varint()
	return int64(v>>1) ^ -int64(v&1)
}

func (t *thrift) binary() []byte {
	n := t.varint()
	if n > uint64(len(t.b)-t.i) {
		t.fail(errShort)
		return nil
	}
	t.i += int(n)
	return t.b[t.i-int(n) : t.i]
}

// fields visits the fields of a structure. visit reads the value and returns true, or false to skip it.
func (t *thrift) fields(visit func(id int, kind byte) bool) { t.structure(0, visit) }

func (t *thrift) structure(depth int, visit func(id int, kind byte) bool) {
	id := 0
	for t.err == nil {
		head := t.byte()
		kind := head & 15
		if head == 0 || t.err != nil {
			return
		}
		if head>>4 != 0 {
			id += int(head >> 4)
		} else {
			id = int(t.int())
		}
		if visit == nil || !visit(id, kind) {
			t.skip(kind, depth, false)
		}
	}
}

// elements visits the elements of a list of structures; visit reads one.
func (t *thrift) elements(visit func(i int)) {
	kind, n := t.list()
	if n > 0 && kind != typeStruct {
		t.fail(errThrift)
	}
	for i := 0; uint64(i) < n && t.err == nil; i++ {
		visit(i)
	}
}

// integers visits the elements of a list of integers.
func (t *thrift) integers(visit func(v int64)) {
	kind, n := t.list()
	if n > 0 && kind != typeI32 {
		t.fail(errThrift)
	}
	for ; n > 0 && t.err == nil; n-- {
		visit(t.int())
	}
}

func (t *thrift) list() (kind byte, n uint64) {
	head := t.byte()
	if n = uint64(head >> 4); n == 15 {
		n = t.varint()
	}
	return head & 15, n
}

// skip skips a value; every element of a list has at least a byte, so the input bounds the work.
func (t *thrift) skip(kind byte, depth int, inList bool) {
	if depth > maxDepth {
		t.fail(errThrift)
	}
	switch kind {
	case typeTrue, typeFalse:
		if inList {
			t.byte()
		}
	case typeByte:
		t.byte()
	case typeI16, typeI32, typeI64:
		t.varint()
	case typeDouble:
		for range 8 {
			t.byte()
		}
	case typeBinary:
		t.binary()
	case typeList, typeSet:
		kind, n := t.list()
		for ; n > 0 && t.err == nil; n-- {
			t.skip(kind, depth+1, true)
		}
	case typeMap:
		if n := t.varint(); n > 0 {
			kinds := t.byte()
			for ; n > 0 && t.err == nil; n-- {
				t.skip(kinds>>4, depth+1, true)
				t.skip(kinds&15, depth+1, true)
			}
		}
	case typeStruct:
		t.structure(depth+1, nil)
	default:
		t.fail(errThrift)
	}
}
