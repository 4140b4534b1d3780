package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Limits of the reader. MaxHeader is that of the format; the others are far beyond any real file.
const (
	MaxHeader  = 100_000_000 // bytes of JSON
	MaxTensors = 1_000_000
	MaxName    = 512 // bytes
	MaxRank    = 8   // dimensions
)

const metadataKey = "__metadata__"

// Info describes one stored tensor.
type Info struct {
	Name   string
	DType  DType
	Shape  []int
	Offset int64 // of its first byte, from the start of the file
	Size   int64 // bytes
}

// header is the checked content of the JSON header. tensors are in file order and tile the data exactly.
type header struct {
	tensors  []Info
	metadata map[string]string
}

// parseHeader checks the JSON header of a file by the rules of the format. dataStart is the file offset of the first
// data byte, and fileSize the required end of the data.
func parseHeader(text []byte, dataStart, fileSize int64) (*header, error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, errors.New("header does not start with '{'")
	}
	if !utf8.Valid(text) {
		return nil, errors.New("header is not UTF-8")
	}
	z := &scanner{s: text}
	h := &header{}
	seen := map[string]bool{}
	err := z.object(func(key string) (err error) {
		if seen[key] {
			return z.fail("key %q appears twice", key)
		}
		seen[key] = true
		if key == metadataKey {
			h.metadata, err = z.stringMap()
			return err
		}
		if len(key) > MaxName {
			return z.fail("tensor name of %d bytes, the limit is %d", len(key), MaxName)
		}
		if len(h.tensors) == MaxTensors {
			return z.fail("more than %d tensors", MaxTensors)
		}
		t, err := z.tensor()
		if err != nil {
			return fmt.Errorf("tensor %q: %w", key, err)
		}
		t.Name = key
		h.tensors = append(h.tensors, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for ; z.i < len(text); z.i++ {
		if text[z.i] != ' ' {
			return nil, z.fail("%q after the end of the header object", text[z.i])
		}
	}
	return h, h.tile(dataStart, fileSize)
}

// tensor parses {"dtype":…,"shape":[…],"data_offsets":[begin,end]}. Offset is still relative to the data.
func (z *scanner) tensor() (t Info, err error) {
	var dims, ends [MaxRank]int64
	var shape, offsets []int64
	err = z.object(func(key string) (err error) {
		switch {
		case key == "dtype" && t.DType == "":
			var s string
			s, err = z.str()
			t.DType = DType(s)
			if err == nil && t.DType.rank() < 0 {
				err = z.fail("unknown dtype %q", s)
			}
		case key == "shape" && shape == nil:
			shape, err = z.uints(dims[:0], MaxRank)
		case key == "data_offsets" && offsets == nil:
			offsets, err = z.uints(ends[:0], 2)
		default:
			err = z.fail("unknown or repeated key %q", key)
		}
		return err
	})
	switch {
	case err != nil:
		return t, err
	case t.DType == "" || shape == nil || len(offsets) != 2:
		return t, z.fail("expected dtype, shape and two data_offsets")
	case offsets[0] > offsets[1]:
		return t, z.fail("data_offsets %v are not in ascending order", offsets)
	}
	t.Shape = make([]int, len(shape))
	for i, n := range shape {
		if n > math.MaxInt {
			return t, z.fail("dimension %d is too large", n)
		}
		t.Shape[i] = int(n)
	}
	t.Offset, t.Size = offsets[0], offsets[1]-offsets[0]
	size, err := t.DType.ByteSize(t.Shape)
	if err == nil && size != t.Size {
		err = z.fail("data_offsets span %d bytes, but %s %v needs %d", t.Size, t.DType, t.Shape, size)
	}
	return t, err
}

// tile sorts the tensors by offset, makes offsets absolute, and checks that they cover the data from dataStart to
// fileSize without gaps or overlaps.
func (h *header) tile(dataStart, fileSize int64) error {
	slices.SortFunc(h.tensors, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	at := int64(0)
	for i := range h.tensors {
		t := &h.tensors[i]
		if t.Offset != at {
			return fmt.Errorf("tensor %q starts at data byte %d, but the previous one ends at %d", t.Name, t.Offset, at)
		}
		if t.Size > fileSize-dataStart-at {
			return fmt.Errorf("tensor %q ends past the end of the file (truncated file?)", t.Name)
		}
		at += t.Size
		t.Offset += dataStart
	}
	if at != fileSize-dataStart {
		return fmt.Errorf("%d bytes after the last tensor", fileSize-dataStart-at)
	}
	return nil
}
