package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

var errShortPage = errors.New("a page ends within its values")

// Physical types.
const (
	typeBoolean    = 0
	typeInt32      = 1
	typeInt64      = 2
	typeInt96      = 3
	typeFloat      = 4
	typeDouble64   = 5
	typeByteArray  = 6
	typeFixedArray = 7
)

// leaf is the storage type of a column's values. The zero value is BYTE_ARRAY.
type leaf struct {
	fixed int  // bytes of a value; 0 for BYTE_ARRAY, and for BOOLEAN, whose values are bits
	bits  bool // BOOLEAN
}

// width returns the bytes of each value in a dictionary, 0 if they differ.
func (l leaf) width() int { return l.fixed }

// The encodings of values.
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingRLE             = 3
	encodingBitPacked       = 4 // of levels, formerly
	encodingDeltaPacked     = 5
	encodingDeltaLength     = 6
	encodingDeltaBytes      = 7
	encodingDictionary      = 8
	encodingSplit           = 9
)

// reads reports whether values of the column may be in an encoding.
func (l leaf) reads(encoding int64) bool {
	switch encoding {
	case encodingPlain:
		return true
	case encodingPlainDictionary, encodingDictionary:
		return !l.bits
	case encodingRLE:
		return l.bits
	case encodingDeltaPacked:
		return l.fixed == 4 || l.fixed == 8
	case encodingDeltaLength:
		return l.fixed == 0 && !l.bits
	case encodingDeltaBytes:
		return !l.bits
	case encodingSplit:
		return l.fixed > 0
	}
	return false
}

// decoder returns a decoder that yields the values of a page in turn. A value is never nil; a BOOLEAN is a byte, 0 or
// 1.
func (p *pages) decoder(encoding int64, page []byte) (func() ([]byte, error), error) {
	if !p.leaf.reads(encoding) {
		return nil, fmt.Errorf("%w: values in encoding %d", ErrUnsupported, encoding)
	}
	if len(page) == 0 { // nulls alone
		return func() ([]byte, error) { return nil, errShortPage }, nil
	}
	switch encoding {
	case encodingPlain:
		switch {
		case p.leaf.bits:
			v := &flags{b: page}
			return v.next, nil
		case p.leaf.fixed > 0:
			v := &fixed{b: page, n: p.leaf.fixed}
			return v.next, nil
		}
		v := &plain{b: page}
		return v.next, nil
	case encodingPlainDictionary, encodingDictionary:
		if page[0] > 32 {
			return nil, fmt.Errorf("indices of %d bits", page[0])
		}
		v := &indexed{dictionary: &p.dictionary, indices: hybrid{b: page[1:], width: int(page[0])}}
		return v.next, nil
	case encodingRLE:
		if len(page) < 4 {
			return nil, errShortPage
		}
		v := &runs{hybrid: hybrid{b: page[4:], width: 1}}
		return v.next, nil
	case encodingDeltaPacked:
		d, _, err := newDeltas(page)
		v := &integers{deltas: d, n: p.leaf.fixed}
		return v.next, err
	case encodingDeltaLength:
		v, err := newLengths(page)
		return v.next, err
	case encodingDeltaBytes:
		prefixes, rest, err := newDeltas(page)
		if err != nil {
			return nil, err
		}
		suffixes, err := newLengths(rest)
		if p.previous = p.previous[:0]; p.previous == nil {
			p.previous = []byte{}
		}
		v := &shared{prefixes: prefixes, suffixes: suffixes, last: &p.previous, width: p.leaf.fixed}
		return v.next, err
	}
	v := &transposed{b: page, n: p.leaf.fixed, count: len(page) / p.leaf.fixed, value: make([]byte, p.leaf.fixed)}
	return v.next, nil
}

// fixed values have n bytes each.
type fixed struct {
	b []byte
	n int
}

func (f *fixed) next() ([]byte, error) {
	if len(f.b) < f.n {
		return nil, errShortPage
	}
	v := f.b[:f.n:f.n]
	f.b = f.b[f.n:]
	return v, nil
}

// truth holds the two values of BOOLEAN.
var truth = [2][]byte{{0}, {1}}

// flags are bits, the lowest of a byte first.
type flags struct {
	b  []byte
	at int
}

func (f *flags) next() ([]byte, error) {
	if f.at>>3 >= len(f.b) {
		return nil, errShortPage
	}
	v := truth[f.b[f.at>>3]>>(f.at&7)&1]
	f.at++
	return v, nil
}

// runs are bits in encoding RLE.
type runs struct{ hybrid }

func (r *runs) next() ([]byte, error) {
	v, err := r.hybrid.next()
	return truth[v&1], err
}

// integers are numbers of n bytes in encoding DELTA_BINARY_PACKED.
type integers struct {
	deltas deltas
	n      int
	value  [8]byte
}

func (i *integers) next() ([]byte, error) {
	v, err := i.deltas.next()
	binary.LittleEndian.PutUint64(i.value[:], uint64(v))
	return i.value[:i.n], err
}

// transposed values are stored as all their first bytes, then all their second bytes, and so on (encoding
// BYTE_STREAM_SPLIT).
type transposed struct {
	b        []byte
	n, count int
	at       int
	value    []byte
}

func (t *transposed) next() ([]byte, error) {
	if t.at >= t.count {
		return nil, errShortPage
	}
	for i := range t.n {
		t.value[i] = t.b[i*t.count+t.at]
	}
	t.at++
	return t.value, nil
}

// plain reads values, each after its length in four bytes.
type plain struct{ b []byte }

func (p *plain) next() ([]byte, error) {
	if len(p.b) < 4 {
		return nil, errShortPage
	}
	n := binary.LittleEndian.Uint32(p.b)
	if int64(n) > int64(len(p.b)-4) {
		return nil, errShortPage
	}
	v := p.b[4 : 4+n : 4+n]
	p.b = p.b[4+n:]
	return v, nil
}

// dictionary is a page of plain values that data pages refer to.
type dictionary struct {
	page   []byte
	width  int      // bytes of each value; 0 if they differ
	starts []uint32 // of values that differ, in page
}

func (d *dictionary) clear() { d.page, d.starts = d.page[:0], d.starts[:0] }

func (d *dictionary) set(page []byte, width int) error {
	d.clear()
	d.width = width
	d.page = append(d.page, page...)
	if width > 0 {
		return nil
	}
	v := plain{b: d.page}
	for len(v.b) > 0 {
		d.starts = append(d.starts, uint32(len(d.page)-len(v.b)))
		if _, err := v.next(); err != nil {
			return err
		}
	}
	return nil
}

// indexed values are indices into a dictionary.
type indexed struct {
	*dictionary
	indices hybrid
}

func (x *indexed) next() ([]byte, error) {
	i, err := x.indices.next()
	if err != nil {
		return nil, err
	}
	if n := x.width; n > 0 {
		at := int64(i) * int64(n)
		if at+int64(n) > int64(len(x.page)) {
			return nil, fmt.Errorf("value %d of a dictionary of %d", i, len(x.page)/n)
		}
		return x.page[at : at+int64(n) : at+int64(n)], nil
	}
	if int64(i) >= int64(len(x.starts)) {
		return nil, fmt.Errorf("value %d of a dictionary of %d", i, len(x.starts))
	}
	v := plain{b: x.page[x.starts[i]:]}
	return v.next()
}

// hybrid reads numbers of width bits in runs, repeated or packed (encoding RLE).
type hybrid struct {
	b      []byte
	width  int
	left   uint64 // of the run
	packed bool
	value  uint32 // that is repeated
	bit    int    // of packed numbers, in b
}

func newHybrid(b []byte, most int) hybrid { return hybrid{b: b, width: bits.Len(uint(most))} }

func (h *hybrid) next() (uint32, error) {
	for h.left == 0 {
		if err := h.run(); err != nil {
			return 0, err
		}
	}
	h.left--
	if !h.packed {
		return h.value, nil
	}
	at := h.bit >> 3
	var word uint64
	if len(h.b) >= at+8 {
		word = binary.LittleEndian.Uint64(h.b[at:])
	} else {
		for i, c := range h.b[min(at, len(h.b)):] {
			word |= uint64(c) << (8 * i)
		}
	}
	v := uint32(word >> (h.bit & 7) & (1<<h.width - 1))
	h.bit += h.width
	if h.left == 0 {
		h.b, h.bit = h.b[h.bit/8:], 0
	}
	return v, nil
}

func (h *hybrid) run() error {
	n, size := binary.Uvarint(h.b)
	if size <= 0 {
		return errShortPage
	}
	h.b = h.b[size:]
	if h.packed = n&1 == 1; h.packed {
		h.left = n >> 1 * 8
		// the last run may be cut to whole bytes
		if n>>1 > uint64(len(h.b)) || n>>1*uint64(h.width) > uint64(len(h.b)) {
			if h.width > 0 {
				h.left = min(h.left, uint64(len(h.b)*8/h.width))
			}
			if h.left == 0 {
				return errShortPage
			}
		}
		return nil
	}
	bytes := (h.width + 7) / 8
	if len(h.b) < bytes {
		return errShortPage
	}
	h.left, h.value = n>>1, 0
	for i := range bytes {
		h.value |= uint32(h.b[i]) << (8 * i)
	}
	h.b = h.b[bytes:]
	return nil
}

// deltas reads numbers in encoding DELTA_BINARY_PACKED: the first number, then blocks of differences between
// neighbours. A block has its smallest difference and, in miniblocks with separate widths, the excess of each
// difference over it.
type deltas struct {
	b        []byte
	perMini  int // numbers
	minis    int // in a block
	left     uint64
	last     int64
	first    bool // the first number is still to come
	smallest int64
	widths   []byte // of the miniblocks not yet read
	width    int    // of this one
	inMini   int    // numbers left in it
	bit      int
}

// newDeltas also returns the bytes after the numbers.
func newDeltas(b []byte) (d deltas, rest []byte, err error) {
	block, b, ok1 := uvarint(b)
	minis, b, ok2 := uvarint(b)
	total, b, ok3 := uvarint(b)
	first, b, ok4 := uvarint(b)
	if !ok1 || !ok2 || !ok3 || !ok4 || minis == 0 || minis > 1<<10 || block > 1<<20 || block/minis == 0 ||
		block/minis%8 != 0 || total > 1<<31 {
		return d, nil, errShortPage
	}
	d = deltas{b: b, perMini: int(block / minis), minis: int(minis), left: total, last: unzigzag(first), first: true}
	end := d
	for n := total; n > 1; { // pass over the blocks
		if err := end.block(); err != nil {
			return d, nil, err
		}
		for _, w := range end.widths {
			if n <= 1 {
				break
			}
			size := end.perMini / 8 * int(w)
			if size > len(end.b) {
				return d, nil, errShortPage
			}
			end.b = end.b[size:]
			n -= min(n-1, uint64(end.perMini))
		}
	}
	return d, end.b, nil
}

func uvarint(b []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(b)
	return v, b[max(n, 0):], n > 0
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func (d *deltas) block() error {
	smallest, b, ok := uvarint(d.b)
	if !ok || len(b) < d.minis {
		return errShortPage
	}
	d.smallest, d.widths, d.b = unzigzag(smallest), b[:d.minis], b[d.minis:]
	return nil
}

func (d *deltas) next() (int64, error) {
	if d.left == 0 {
		return 0, errShortPage
	}
	d.left--
	if d.first {
		d.first = false
		return d.last, nil
	}
	if d.inMini == 0 {
		if len(d.widths) == 0 {
			if err := d.block(); err != nil {
				return 0, err
			}
		}
		d.width, d.widths, d.inMini, d.bit = int(d.widths[0]), d.widths[1:], d.perMini, 0
		if d.width > 64 || d.perMini/8*d.width > len(d.b) {
			return 0, errShortPage
		}
	}
	d.last += d.smallest + int64(bitsAt(d.b, d.bit, d.width))
	d.bit += d.width
	if d.inMini--; d.inMini == 0 {
		d.b = d.b[d.perMini/8*d.width:]
	}
	return d.last, nil
}

// bitsAt returns the number of width bits, at most 64, that begins at a bit.
func bitsAt(b []byte, bit, width int) uint64 {
	at, shift := bit>>3, bit&7
	var low uint64
	if at+8 <= len(b) {
		low = binary.LittleEndian.Uint64(b[at:])
	} else {
		for i, c := range b[min(at, len(b)):] {
			low |= uint64(c) << (8 * i)
		}
	}
	v := low >> shift
	if shift+width > 64 && at+8 < len(b) {
		v |= uint64(b[at+8]) << (64 - shift)
	}
	return v & (1<<width - 1)
}

// lengths are values stored after the lengths of all of them.
type lengths struct {
	deltas deltas
	b      []byte
}

func newLengths(page []byte) (*lengths, error) {
	d, rest, err := newDeltas(page)
	return &lengths{d, rest}, err
}

func (l *lengths) next() ([]byte, error) {
	n, err := l.deltas.next()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(len(l.b)) {
		return nil, errShortPage
	}
	v := l.b[:n:n]
	l.b = l.b[n:]
	return v, nil
}

// shared values share a prefix with the previous value.
type shared struct {
	prefixes deltas
	suffixes *lengths
	last     *[]byte
	width    int // of every value; 0 if they differ
}

func (s *shared) next() ([]byte, error) {
	n, err := s.prefixes.next()
	if err != nil {
		return nil, err
	}
	suffix, err := s.suffixes.next()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(len(*s.last)) || n+int64(len(suffix)) > maxPage {
		return nil, errShortPage
	}
	if *s.last = append((*s.last)[:n], suffix...); s.width > 0 && len(*s.last) != s.width {
		return nil, fmt.Errorf("a value of %d bytes in a column of %d", len(*s.last), s.width)
	}
	return *s.last, nil
}
