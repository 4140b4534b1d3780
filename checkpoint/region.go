package checkpoint

import (
	"fmt"
	"strings"

	"anneal/internal/units"
	"anneal/safetensors"
)

// Region is a part of a tensor: elements From … To−1 of a box, in row-major order. If From and To are 0, it is the
// whole box; if the box is zero as well, the whole tensor. From = To > 0 is an empty region.
type Region struct {
	Box  Box   `json:"box,omitzero"`
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
}

// Box holds the elements of a tensor whose index in each dimension d is Offset[d] or one of the Shape[d]-1 after it.
// The zero Box is the whole tensor.
type Box struct {
	Offset []int `json:"offset"`
	Shape  []int `json:"shape"`
}

func (b Box) isZero() bool { return b.Offset == nil && b.Shape == nil }

func (r Region) isZero() bool { return r.Box.isZero() && r.From == 0 && r.To == 0 }

// plain returns the zero Region for a region that covers a whole tensor of this shape.
func (r Region) plain(shape []int) Region {
	n := int64(1)
	for d, dim := range shape {
		n *= int64(dim)
		if !r.Box.isZero() && (r.Box.Offset[d] != 0 || r.Box.Shape[d] != dim) {
			return r
		}
	}
	if r.From == 0 && (r.To == 0 || r.To == n) {
		return Region{}
	}
	return r
}

// String returns the region for a name: "" for the whole tensor, "@0,16+8,4" for a box of shape [8, 4] at [0, 16], and
// "@0,16+8,4@10-20" for elements 10 to 19 of it.
func (r Region) String() string {
	var b strings.Builder
	if !r.Box.isZero() {
		fmt.Fprintf(&b, "@%s+%s", list(r.Box.Offset), list(r.Box.Shape))
	}
	if r.From != 0 || r.To != 0 {
		fmt.Fprintf(&b, "@%d-%d", r.From, r.To)
	}
	return b.String()
}

func list(numbers []int) string { return strings.ReplaceAll(units.List("%d", numbers), " ", "") }

// span is a region of a tensor in bytes: the last dimension is the bytes of an element.
//
// In row-major order the bytes of a box are in the order of their places in the tensor. So a region is the part of its
// box between two places, and the intersection of two regions is again a region: the part of the boxes' intersection
// between the later begin and the earlier end.
type span struct {
	rank           int
	dims, off, ext [safetensors.MaxRank + 1]int64 // of the tensor; of the box
	from, to       int64                          // bytes of the box
}

// span returns the region of a tensor of this dtype and shape, or an error if the tensor has no such region.
func (r Region) span(dtype string, shape []int) (span, error) {
	size, err := safetensors.DType(dtype).ByteSize(shape)
	if err != nil {
		return span{}, err
	}
	if len(shape) > safetensors.MaxRank {
		return span{}, fmt.Errorf("%d dimensions, more than %d", len(shape), safetensors.MaxRank)
	}
	elements := int64(1)
	for _, n := range shape {
		elements *= int64(n)
	}
	width := size / max(elements, 1)
	if width*elements != size { // several elements share a byte
		if !r.isZero() {
			return span{}, fmt.Errorf("a tensor of %s cannot be in pieces", dtype)
		}
		shape, width = []int{int(size)}, 1
	}
	box := r.Box
	if box.isZero() {
		box = Box{make([]int, len(shape)), shape}
	}
	if len(box.Offset) != len(shape) || len(box.Shape) != len(shape) {
		return span{}, fmt.Errorf("the box %v does not have the tensor's %d dimensions", r, len(shape))
	}
	s := span{rank: len(shape) + 1, from: r.From, to: r.To}
	n := int64(1)
	for d, dim := range shape {
		off, ext := box.Offset[d], box.Shape[d]
		if off < 0 || ext < 0 || off > dim-ext {
			return span{}, fmt.Errorf("the box %v lies outside of the tensor's shape [%s]", r, list(shape))
		}
		s.dims[d], s.off[d], s.ext[d] = int64(dim), int64(off), int64(ext)
		n *= int64(ext)
	}
	s.dims[s.rank-1], s.ext[s.rank-1] = width, width
	if s.from == 0 && s.to == 0 {
		s.to = n
	}
	if s.from < 0 || s.to < s.from || s.to > n {
		return span{}, fmt.Errorf("elements %d to %d do not lie within the %d of the box", s.from, s.to, n)
	}
	s.from, s.to = s.from*width, s.to*width
	return s, nil
}

func (s *span) size() int64 { return s.to - s.from }

// at returns the place in the tensor of a byte of the box.
func (s *span) at(i int64) int64 {
	place, stride := int64(0), int64(1)
	for d := s.rank - 1; d >= 0; d-- {
		place += (s.off[d] + i%s.ext[d]) * stride
		i, stride = i/s.ext[d], stride*s.dims[d]
	}
	return place
}

// before returns how many bytes of the box come before a place in the tensor.
func (s *span) before(place int64) int64 {
	stride, row := int64(1), int64(1)
	for d := range s.rank {
		stride, row = stride*s.dims[d], row*s.ext[d]
	}
	n := int64(0)
	for d := range s.rank {
		stride, row = stride/s.dims[d], row/s.ext[d]
		i := place/stride - s.off[d]
		if i < 0 {
			return n
		}
		if i >= s.ext[d] {
			return n + s.ext[d]*row
		}
		n, place = n+i*row, place%stride
	}
	return n
}

// first and end return the places in the tensor of the first byte of a non-empty span, and after its last byte.
func (s *span) first() int64 { return s.at(s.from) }
func (s *span) end() int64   { return s.at(s.to-1) + 1 }

// apart reports whether the boxes of two spans have nothing in common, or one of the spans is empty.
func (s *span) apart(o *span) bool {
	for d := range s.rank {
		if s.off[d] >= o.off[d]+o.ext[d] || o.off[d] >= s.off[d]+s.ext[d] {
			return true
		}
	}
	return s.size() == 0 || o.size() == 0
}

// meet returns the intersection of two spans of a tensor.
func (s *span) meet(o *span) span {
	if s.apart(o) {
		return span{}
	}
	m := span{rank: s.rank, dims: s.dims}
	for d := range s.rank {
		m.off[d] = max(s.off[d], o.off[d])
		m.ext[d] = min(s.off[d]+s.ext[d], o.off[d]+o.ext[d]) - m.off[d]
	}
	m.from = m.before(max(s.first(), o.first()))
	m.to = max(m.from, m.before(min(s.end(), o.end())))
	return m
}

// rows calls use for every run of s that is contiguous in both a and b; s must be a part of both. A run has n bytes;
// it begins inA bytes after the first byte of a, and inB bytes after that of b.
func (s *span) rows(a, b *span, use func(inA, inB, n int64)) {
	row := int64(1)
	for d := s.rank - 1; d >= 0; d-- {
		row *= s.ext[d]
		if s.ext[d] != a.ext[d] || s.ext[d] != b.ext[d] {
			break
		}
	}
	for i := s.from; i < s.to; {
		n := min(row-i%row, s.to-i)
		place := s.at(i)
		use(a.before(place)-a.from, b.before(place)-b.from, n)
		i += n
	}
}

// index returns the element at a place in the tensor.
func (s *span) index(place int64) []int64 {
	place /= s.dims[s.rank-1]
	index := make([]int64, s.rank-1)
	for d := s.rank - 2; d >= 0; d-- {
		index[d], place = place%s.dims[d], place/s.dims[d]
	}
	return index
}

// cut returns bytes [from, to) of s.
func (s *span) cut(from, to int64) span {
	part := *s
	part.from, part.to = s.from+from, s.from+to
	return part
}
