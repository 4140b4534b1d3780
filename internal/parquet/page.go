package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Values delivers the column in a row group in order. A value, nil if it is null, is good until yield returns; an error
// of yield ends it. Rows that were delivered before an error are good, as far as checksums are written.
func (f *File) Values(group int, yield func(value []byte) error) error {
	g := f.Groups[group]
	rows := int64(0)
	f.scratch.dictionary.clear()
	for at, end := g.offset, g.offset+g.Bytes; at < end && rows < g.Rows; {
		h, n, err := f.header(at, end)
		if err != nil {
			return err
		}
		at += n
		page, err := f.page(h, at, end, g.codec)
		if err != nil {
			return err
		}
		at += h.compressed
		switch h.kind {
		case dictionaryPage:
			if err := f.scratch.dictionary.set(page); err != nil {
				return err
			}
		case dataPage, dataPageV2:
			if h.values > g.Rows-rows {
				return errors.New("pages hold more rows than their row group")
			}
			rows += h.values
			if err := f.scratch.values(h, page, f.maxDef, yield); err != nil {
				return err
			}
		}
	}
	if rows != g.Rows {
		return fmt.Errorf("the row group holds %d rows of %d", rows, g.Rows)
	}
	return nil
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
	levels                   int64 // encoding of definition levels
	defBytes, repBytes       int64 // version 2: of the levels, which are not compressed
	plain                    bool  // version 2: nothing is compressed
}

// header reads the page header at an offset and says how long it is.
func (f *File) header(at, end int64) (h header, n int64, err error) {
	for _, n := range []int64{256, 64 << 10, 16 << 20} { // it may hold values, as statistics
		b, err := f.scratch.read(f.r, at, min(n, end-at))
		if err != nil {
			return h, 0, err
		}
		t := thrift{b: b}
		if h = pageHeader(&t); t.err == nil {
			if h.compressed < 0 || h.uncompressed < 0 || h.values < 0 || h.defBytes < 0 || h.repBytes < 0 || h.defBytes > 1<<31 || h.repBytes > 1<<31 {
				return h, 0, errThrift
			}
			if h.compressed > maxPage || h.uncompressed > maxPage {
				return h, 0, fmt.Errorf("%w: it has %d bytes, %d decompressed; the most are %d; write smaller pages", ErrPage, h.compressed, h.uncompressed, maxPage)
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

// page reads the content of a page, decompressed. For version 2 the levels stay in front.
func (f *File) page(h header, at, end, codec int64) ([]byte, error) {
	if h.compressed > end-at {
		return nil, fmt.Errorf("a page of %d bytes where the row group has %d left", h.compressed, end-at)
	}
	if h.kind != dataPage && h.kind != dictionaryPage && h.kind != dataPageV2 {
		return nil, nil
	}
	b, err := f.scratch.read(f.r, at, h.compressed)
	if err != nil {
		return nil, err
	}
	if h.hasCRC && crc32.ChecksumIEEE(b) != h.crc {
		return nil, errors.New("a page does not have its checksum")
	}
	levels := int64(0)
	if h.kind == dataPageV2 {
		if levels = h.repBytes + h.defBytes; levels > h.compressed || levels > h.uncompressed {
			return nil, errors.New("a page claims to have levels that are longer than it is")
		}
		if h.plain {
			codec = 0
		}
	}
	if codec == 0 {
		return b, nil
	}
	want := h.uncompressed - levels
	if f.given+want > freeExpansion+maxExpansion*(f.taken+h.compressed) { // a claim alone is not held against the pages that follow
		return nil, fmt.Errorf("%w: it has %d bytes and claims to become %d", ErrPage, h.compressed, want)
	}
	f.taken += h.compressed
	f.given += want
	return f.scratch.decompress(codec, b[:levels], b[levels:], int(want))
}

// ErrPage is for a page that may be sound but asks for too much memory.
var ErrPage = errors.New("a page is too large")

// All pages of a File may become so many bytes, and so many for each of theirs.
const (
	freeExpansion = 64 << 20
	maxExpansion  = 500
)

// scratch holds the memory that pages take in turn.
type scratch struct {
	raw, out   []byte
	dictionary dictionary
	previous   []byte // DELTA_BYTE_ARRAY: the last value
	zstd       *zstd.Decoder
	gzip       *gzip.Reader
}

// read returns n bytes at an offset; they stay until the next call.
func (s *scratch) read(r io.ReaderAt, at, n int64) ([]byte, error) {
	s.raw = room(s.raw, int(n))
	_, err := r.ReadAt(s.raw, at)
	if err == io.EOF {
		err = errors.New("the file is cut off")
	}
	return s.raw, err
}

// room returns a buffer of n bytes, b itself if it has them.
func room(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	return make([]byte, n, max(n, min(2*cap(b), maxPage)))
}

var codecs = map[int64]string{3: "LZO", 4: "Brotli", 5: "LZ4", 7: "LZ4_RAW"}

// decompress returns levels and want decompressed bytes.
func (s *scratch) decompress(codec int64, levels, compressed []byte, want int) ([]byte, error) {
	s.out = room(s.out, len(levels)+want)
	copy(s.out, levels)
	out := s.out[len(levels):]
	if want == 0 {
		return s.out, nil
	}
	var err error
	n := want
	switch codec {
	case 1:
		if n, err = snappy.DecodedLen(compressed); err == nil && n == want {
			_, err = snappy.Decode(out, compressed)
		}
	case 2:
		n, err = s.gunzip(out, compressed)
	case 6:
		if s.zstd == nil {
			if s.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true)); err != nil {
				return nil, err
			}
		}
		var got []byte
		got, err = s.zstd.DecodeAll(compressed, out[:0:want])
		n = len(got)
	default:
		return nil, fmt.Errorf("pages under %s (codec %d) are not read; write the file with zstd, snappy or gzip", codecs[codec], codec)
	}
	if err == nil && n != want {
		err = fmt.Errorf("a page claims to become %d bytes", want)
	}
	return s.out, err
}

// gunzip fills out, and returns a greater length if there is more.
func (s *scratch) gunzip(out, compressed []byte) (int, error) {
	var err error
	if s.gzip == nil {
		s.gzip, err = gzip.NewReader(bytes.NewReader(compressed))
	} else {
		err = s.gzip.Reset(bytes.NewReader(compressed))
	}
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(s.gzip, out)
	if err != nil {
		return n, err
	}
	var more [1]byte
	m, err := io.ReadFull(s.gzip, more[:])
	if err == io.EOF {
		err = nil
	}
	return n + m, err
}

// values delivers the values of a data page.
func (s *scratch) values(h header, page []byte, maxDef int, yield func([]byte) error) error {
	var levels hybrid
	switch {
	case h.kind == dataPageV2:
		levels = newHybrid(page[h.repBytes:h.repBytes+h.defBytes], maxDef)
		page = page[h.repBytes+h.defBytes:]
	case maxDef > 0:
		if h.levels != 3 { // RLE
			return fmt.Errorf("definition levels in encoding %d are not read", h.levels)
		}
		if len(page) < 4 {
			return errShortPage
		}
		n := int64(binary.LittleEndian.Uint32(page))
		if page = page[4:]; n > int64(len(page)) {
			return errShortPage
		}
		levels = newHybrid(page[:n], maxDef)
		page = page[n:]
	}
	next, err := s.decoder(h.encoding, page)
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
