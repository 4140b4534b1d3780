package gguf

import (
	"errors"
	"fmt"
	"math"
	"reflect"
)

const (
	magic   = "GGUF"
	version = 3
)

// Limits of the reader, far beyond any real file; maxName and maxRank are those of the format.
const (
	maxHeader  = 1 << 30 // bytes of metadata and descriptions
	maxTensors = 1_000_000
	maxKeys    = 100_000
	maxKey     = 1 << 16 // bytes of a key
	maxName    = 63      // bytes of a tensor's name
	maxRank    = 4       // dimensions
)

// Info describes one stored tensor.
type Info struct {
	Name   string
	Type   Type
	Shape  []int // the length of rows last
	Offset int64 // of its first byte, from the start of the file
	Size   int64 // bytes
}

// header is the checked content of the part before the data.
type header struct {
	metadata []KV
	tensors  []Info
}

// kind is the type of a metadata value, by its number in files.
type kind int32

const kindArray kind = 9

// kinds holds the Go type of each kind except arrays.
var kinds = map[kind]reflect.Type{
	0: reflect.TypeFor[uint8](), 1: reflect.TypeFor[int8](), 2: reflect.TypeFor[uint16](), 3: reflect.TypeFor[int16](),
	4: reflect.TypeFor[uint32](), 5: reflect.TypeFor[int32](), 6: reflect.TypeFor[float32](),
	7: reflect.TypeFor[bool](), 8: reflect.TypeFor[string](), 10: reflect.TypeFor[uint64](),
	11: reflect.TypeFor[int64](), 12: reflect.TypeFor[float64](),
}

// kindOf returns the kind of a value, or of the elements of a list; -1 if it has none.
func kindOf(v reflect.Value) (k kind, list bool) {
	if !v.IsValid() {
		return -1, false
	}
	t := v.Type()
	if list = t.Kind() == reflect.Slice; list {
		t = t.Elem()
	}
	for k, known := range kinds {
		if known == t {
			return k, list
		}
	}
	return -1, list
}

// header parses the part before the data.
func (z *scanner) header() (*header, error) {
	if string(z.bytes(4)) != magic && z.err == nil {
		return nil, errors.New("the file does not start with GGUF")
	}
	if v := z.uint32(); v != version && v != 2 && z.err == nil {
		return nil, fmt.Errorf("version %d; versions 2 and 3 are read, in little-endian files", v)
	}
	tensors, keys := z.uint64(), z.uint64()
	if tensors > maxTensors || keys > maxKeys {
		return nil, fmt.Errorf("%d tensors and %d keys, the limits are %d and %d", tensors, keys, maxTensors, maxKeys)
	}
	h := &header{}
	align := uint32(alignment)
	seen := map[string]bool{}
	for range keys {
		kv, err := z.entry(seen)
		if err != nil {
			return nil, err
		}
		if kv.Key == "general.alignment" {
			n, is := kv.Value.(uint32)
			if align = n; !is || n == 0 || n&(n-1) != 0 {
				return nil, z.fail("general.alignment is %v, which is no power of two in 32 bits", kv.Value)
			}
		}
		h.metadata = append(h.metadata, kv)
	}
	clear(seen)
	at := int64(0)
	for range tensors {
		t, err := z.tensor(seen)
		if err != nil {
			return nil, err
		}
		if t.Offset != at {
			return nil, z.fail("tensor %q starts at data byte %d, want %d", t.Name, t.Offset, at)
		}
		at += t.Size
		if at += -at & int64(align-1); at < 0 {
			return nil, z.fail("the tensors are too large in total")
		}
		h.tensors = append(h.tensors, t)
	}
	if z.err != nil {
		return nil, z.err
	}
	return h, h.place(z.at+(-z.at&int64(align-1)), z.size)
}

// place makes offsets absolute, and checks that the data is within the file.
func (h *header) place(start, fileSize int64) error {
	for i := range h.tensors {
		t := &h.tensors[i]
		if t.Offset > math.MaxInt64-start-t.Size || start+t.Offset+t.Size > fileSize {
			return fmt.Errorf("tensor %q ends past the end of the file (truncated file?)", t.Name)
		}
		t.Offset += start
	}
	return nil
}

// entry parses a key with its value.
func (z *scanner) entry(seen map[string]bool) (KV, error) {
	key := z.string(maxKey)
	switch {
	case z.err != nil:
		return KV{}, z.err
	case key == "":
		return KV{}, z.fail("an empty key")
	case seen[key]:
		return KV{}, z.fail("key %.100q appears twice", key)
	}
	seen[key] = true
	k := kind(z.uint32())
	if k != kindArray {
		t, known := kinds[k]
		if !known && z.err == nil {
			return KV{}, z.fail("key %.100q has the unknown type %d", key, k)
		}
		return KV{key, z.value(t)}, z.err
	}
	k = kind(z.uint32())
	t, known := kinds[k]
	if !known && z.err == nil {
		return KV{}, z.fail("key %.100q is an array of the unknown type %d", key, k)
	}
	return KV{key, z.list(t)}, z.err
}

// tensor parses the description of a tensor. Offset is still relative to the data.
func (z *scanner) tensor(seen map[string]bool) (t Info, err error) {
	t.Name = z.string(maxName)
	rank := z.uint32()
	switch {
	case z.err != nil:
		return t, z.err
	case seen[t.Name]:
		return t, z.fail("tensor %q appears twice", t.Name)
	case rank > maxRank:
		return t, z.fail("tensor %q has %d dimensions, the limit is %d", t.Name, rank, maxRank)
	}
	seen[t.Name] = true
	t.Shape = make([]int, rank)
	for i := range t.Shape {
		n := z.uint64()
		if n > math.MaxInt {
			return t, z.fail("tensor %q has a dimension of %d", t.Name, n)
		}
		t.Shape[int(rank)-1-i] = int(n)
	}
	t.Type = Type(z.uint32())
	offset := z.uint64()
	if z.err != nil {
		return t, z.err
	}
	if t.Size, err = t.Type.ByteSize(t.Shape); err != nil {
		return t, z.fail("tensor %q: %w", t.Name, err)
	}
	if offset > math.MaxInt64 {
		return t, z.fail("tensor %q starts at data byte %d", t.Name, offset)
	}
	t.Offset = int64(offset)
	return t, nil
}
