package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Values delivers the column in a row group in order. A value is nil if it is null, and valid until yield returns; an
// error of yield ends the delivery. Rows delivered before an error are correct, as far as the file has checksums.
func (f *File) Values(group int, yield func(value []byte) error) error {
	g := f.Groups[group]
	rows := int64(0)
	p := &f.text
	p.begin(f, g.chunk)
	for rows < g.Rows {
		h, page, err := p.next()
		if err == errEnd {
			break
		}
		if err != nil {
			return err
		}
		if h.values > g.Rows-rows {
			return errors.New("pages hold more rows than their row group")
		}
		rows += h.values
		if err := p.values(h, page, f.maxDef, yield); err != nil {
			return err
		}
	}
	if rows != g.Rows {
		return fmt.Errorf("the row group holds %d rows of %d", rows, g.Rows)
	}
	return nil
}

// chunk is a column in a row group.
type chunk struct {
	offset, bytes int64 // on disk
	codec         int64
}

// pages reads the pages of a chunk. Its memory is reused for the next one.
type pages struct {
	f          *File
	leaf       leaf
	at, end    int64
	codec      int64
	out        []byte
	held       *int64 // bytes of the pages of several columns; nil for the text
	dictionary dictionary
	previous   []byte // DELTA_BYTE_ARRAY: the last value
}

func (p *pages) begin(f *File, c chunk) {
	p.f, p.at, p.end, p.codec = f, c.offset, c.offset+c.bytes, c.codec
	p.dictionary.clear()
}

// errEnd means that a chunk has no more data pages.
var errEnd = errors.New("the chunk is at its end")

// next returns the next data page, decompressed; it is valid until the next call. It reads dictionaries on the way.
func (p *pages) next() (h header, page []byte, err error) {
	for p.at < p.end {
		h, n, err := p.f.header(p.at, p.end)
		if err != nil {
			return h, nil, err
		}
		p.at += n
		if page, err = p.page(h); err != nil {
			return h, nil, err
		}
		p.at += h.compressed
		switch h.kind {
		case dictionaryPage:
			if err := p.dictionary.set(page, p.leaf.width()); err != nil {
				return h, nil, err
			}
		case dataPage, dataPageV2:
			return h, page, nil
		}
	}
	return h, nil, errEnd
}

const (
	dataPage       = 0
	dictionaryPage = 2
	dataPageV2     = 3
)

// header is the header of a page.
type header struct {
	kind                     int64
	compressed, uncompressed int64
	crc                      uint32
	hasCRC                   bool
	values, encoding         int64
	levels, repLevels        int64 // encodings of definition and repetition levels
	defBytes, repBytes       int64 // version 2: bytes of the levels, which are not compressed
	plain                    bool  // version 2: nothing is compressed
}

// header reads the page header at an offset and returns its length.
func (f *File) header(at, end int64) (h header, n int64, err error) {
	for _, n := range []int64{256, 64 << 10, 16 << 20} { // it may hold values, as statistics
		b, err := f.codecs.read(f.r, at, min(n, end-at))
		if err != nil {
			return h, 0, err
		}
		t := thrift{b: b}
		if h = pageHeader(&t); t.err == nil {
			if h.compressed < 0 || h.uncompressed < 0 || h.values < 0 || h.defBytes < 0 || h.repBytes < 0 ||
				h.defBytes > 1<<31 || h.repBytes > 1<<31 {
				return h, 0, errThrift
			}
			if h.compressed > maxPage || h.uncompressed > maxPage {
				return h, 0, fmt.Errorf("%w: it has %d bytes, %d decompressed; the limit is %d; write smaller pages",
					ErrPage, h.compressed, h.uncompressed, maxPage)
			}
			return h, int64(t.i), nil
		} else if t.err != errShort || n >= end-at {
			return h, 0, t.err
		}
	}
	return h, 0, errThrift
}

func pageHeader(t *thrift) (h header) {
	h.compressed, h.uncompressed = -1, -1
	t.fields(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == typeI32:
			h.kind = t.int()
		case id == 2 && kind == typeI32:
			h.uncompressed = t.int()
		case id == 3 && kind == typeI32:
			h.compressed = t.int()
		case id == 4 && kind == typeI32:
			h.crc, h.hasCRC = uint32(t.int()), true
		case id == 5 && kind == typeStruct: // data page
			t.fields(func(id int, kind byte) bool {
				switch {
				case id == 1 && kind == typeI32:
					h.values = t.int()
				case id == 2 && kind == typeI32:
					h.encoding = t.int()
				case id == 3 && kind == typeI32:
					h.levels = t.int()
				case id == 4 && kind == typeI32:
					h.repLevels = t.int()
				default:
					return false
				}
				return true
			})
		case id == 8 && kind == typeStruct: // data page of version 2
			t.fields(func(id int, kind byte) bool {
				switch {
				case id == 1 && kind == typeI32:
					h.values = t.int()
				case id == 4 && kind == typeI32:
					h.encoding = t.int()
				case id == 5 && kind == typeI32:
					h.defBytes = t.int()
				case id == 6 && kind == typeI32:
					h.repBytes = t.int()
				case id == 7 && (kind == typeTrue || kind == typeFalse):
					h.plain = kind == typeFalse
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
	return h
}

// page reads the content of the current page, decompressed. In version 2 the levels stay in front.
func (p *pages) page(h header) ([]byte, error) {
	f := p.f
	if h.compressed > p.end-p.at {
		return nil, fmt.Errorf("a page of %d bytes where the row group has %d left", h.compressed, p.end-p.at)
	}
	if h.kind != dataPage && h.kind != dictionaryPage && h.kind != dataPageV2 {
		return nil, nil
	}
	levels, codec := int64(0), p.codec
	if h.kind == dataPageV2 {
		if levels = h.repBytes + h.defBytes; levels > h.compressed || levels > h.uncompressed {
			return nil, errors.New("a page claims levels longer than itself")
		}
		if h.plain {
			codec = 0
		}
	}
	if codec == 0 {
		if err := p.room(h.compressed); err != nil {
			return nil, err
		}
		return p.out, f.codecs.readInto(p.out, f.r, p.at, h)
	}
	b, err := f.codecs.read(f.r, p.at, h.compressed)
	if err == nil {
		err = h.check(b)
	}
	if err != nil {
		return nil, err
	}
	want := h.uncompressed - levels
	// a refused claim must not count against later pages
	if f.given+want > freeExpansion+maxExpansion*(f.taken+h.compressed) {
		return nil, fmt.Errorf("%w: it has %d bytes and claims to become %d", ErrPage, h.compressed, want)
	}
	f.taken += h.compressed
	f.given += want
	if err := p.room(levels + want); err != nil {
		return nil, err
	}
	copy(p.out, b[:levels])
	return p.out, f.codecs.decompress(p.out[levels:], codec, b[levels:])
}

// room makes p.out a buffer of n bytes.
func (p *pages) room(n int64) error {
	before := int64(cap(p.out))
	if p.held != nil && n > before && *p.held-before+n > maxHeld {
		return fmt.Errorf("%w: one page of each other column together have more than %d MiB", ErrPage, maxHeld>>20)
	}
	p.out = room(p.out, int(n))
	if p.held != nil {
		*p.held += int64(cap(p.out)) - before
	}
	return nil
}

// maxHeld is the largest sum of bytes of one page of each column, without the text. With dictionaries columns take up
// to three times as much.
const maxHeld = 128 << 20

// check compares the bytes of a page with its checksum.
func (h *header) check(b []byte) error {
	if h.hasCRC && crc32.ChecksumIEEE(b) != h.crc {
		return errors.New("a page does not have its checksum")
	}
	return nil
}

// ErrPage means that a page needs too much memory, ErrUnsupported that its format is not supported.
var (
	ErrPage        = errors.New("a page is too large")
	ErrUnsupported = errors.New("not read")
)

// The pages of a File may expand to freeExpansion bytes, plus maxExpansion bytes for each byte on disk.
const (
	freeExpansion = 64 << 20
	maxExpansion  = 500
)

// values delivers the values of a data page of a column that does not repeat.
func (p *pages) values(h header, page []byte, maxDef int, yield func([]byte) error) error {
	_, levels, page, err := h.split(page, 0, maxDef)
	if err != nil {
		return err
	}
	next, err := p.decoder(h.encoding, page)
	if err != nil {
		return err
	}
	for range h.values {
		if maxDef > 0 {
			level, err := levels.next()
			if err != nil {
				return err
			}
			if int(level) < maxDef {
				if err := yield(nil); err != nil {
					return err
				}
				continue
			}
		}
		value, err := next()
		if err != nil {
			return err
		}
		if err := yield(value); err != nil {
			return err
		}
	}
	return nil
}

// split cuts a data page into repetition levels, definition levels and values.
func (h *header) split(page []byte, maxRep, maxDef int) (reps, defs hybrid, values []byte, err error) {
	if h.kind == dataPageV2 {
		at := h.repBytes + h.defBytes
		return newHybrid(page[:h.repBytes], maxRep), newHybrid(page[h.repBytes:at], maxDef), page[at:], nil
	}
	if reps, page, err = levels(page, maxRep, h.repLevels); err == nil {
		defs, page, err = levels(page, maxDef, h.levels)
	}
	return reps, defs, page, err
}

// levels cuts levels up to most off a page of version 1; there are none if most is 0.
func levels(page []byte, most int, encoding int64) (h hybrid, rest []byte, err error) {
	if most == 0 {
		return h, page, nil
	}
	if encoding != 3 { // RLE
		return h, nil, fmt.Errorf("%w: levels in encoding %d", ErrUnsupported, encoding)
	}
	if len(page) < 4 {
		return h, nil, errShortPage
	}
	n := int64(binary.LittleEndian.Uint32(page))
	if page = page[4:]; n > int64(len(page)) {
		return h, nil, errShortPage
	}
	return newHybrid(page[:n], most), page[n:], nil
}
