package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/dsnet/compress/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The codecs of pages.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecLZO    = 3
	codecBrotli = 4
	codecLZ4    = 5 // with the frames of Hadoop, or bare
	codecZstd   = 6
	codecLZ4Raw = 7
)

// checkCodec returns an error for a codec that is not supported.
func checkCodec(codec int64) error {
	switch {
	case codec == codecLZO:
		return fmt.Errorf("%w: pages under LZO; write the file with zstd", ErrUnsupported)
	case codec < codecNone || codec > codecLZ4Raw:
		return fmt.Errorf("%w: pages under codec %d; write the file with zstd", ErrUnsupported, codec)
	}
	return nil
}

// codecs holds the decompressors that all columns of a file share.
type codecs struct {
	raw    []byte
	zstd   *zstd.Decoder
	gzip   *gzip.Reader
	brotli *brotli.Reader
}

// read returns n bytes at an offset; they are valid until the next call.
func (s *codecs) read(r io.ReaderAt, at, n int64) ([]byte, error) {
	s.raw = room(s.raw, int(n))
	return s.raw, readAt(s.raw, r, at)
}

// readInto fills b with a page that is not compressed.
func (s *codecs) readInto(b []byte, r io.ReaderAt, at int64, h header) error {
	if err := readAt(b, r, at); err != nil {
		return err
	}
	return h.check(b)
}

func readAt(b []byte, r io.ReaderAt, at int64) error {
	_, err := r.ReadAt(b, at)
	if err == io.EOF {
		err = errors.New("the file is truncated")
	}
	return err
}

// room returns a buffer of n bytes: b itself if it is large enough.
func room(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	return make([]byte, n, max(n, min(2*cap(b), maxPage)))
}

// decompress fills out, whose length is the size that the page claims. No codec allocates more than that.
func (s *codecs) decompress(out []byte, codec int64, compressed []byte) error {
	if len(out) == 0 {
		return nil
	}
	n, err := 0, checkCodec(codec)
	if err != nil {
		return err
	}
	switch codec {
	case codecSnappy:
		if n, err = snappy.DecodedLen(compressed); err == nil && n == len(out) {
			_, err = snappy.Decode(out, compressed)
		}
	case codecGzip:
		if s.gzip == nil {
			s.gzip, err = gzip.NewReader(bytes.NewReader(compressed))
		} else {
			err = s.gzip.Reset(bytes.NewReader(compressed))
		}
		if err == nil {
			n, err = readWhole(s.gzip, out)
		}
	case codecBrotli:
		if s.brotli == nil {
			s.brotli = new(brotli.Reader)
		}
		if err = s.brotli.Reset(bytes.NewReader(compressed)); err == nil {
			n, err = readWhole(s.brotli, out)
		}
	case codecZstd:
		if s.zstd == nil {
			if s.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecodeAllCapLimit(true)); err != nil {
				return err
			}
		}
		var got []byte
		got, err = s.zstd.DecodeAll(compressed, out[:0:len(out)])
		n = len(got)
	case codecLZ4:
		if n, err = hadoopBlocks(out, compressed); err != nil || n != len(out) { // older writers do not frame blocks
			n, err = lz4.UncompressBlock(compressed, out)
		}
	case codecLZ4Raw:
		n, err = lz4.UncompressBlock(compressed, out)
	}
	if err == nil && n != len(out) {
		err = fmt.Errorf("a page claims to become %d bytes", len(out))
	}
	return err
}

// readWhole fills out, and returns a greater length if there are more bytes.
func readWhole(r io.Reader, out []byte) (int, error) {
	n, err := io.ReadFull(r, out)
	if err != nil {
		return n, err
	}
	var more [1]byte
	m, err := io.ReadFull(r, more[:])
	if err == io.EOF {
		err = nil
	}
	return n + m, err
}

// hadoopBlocks fills out with blocks of LZ4 as Hadoop frames them: the length of some content in four bytes,
// big-endian, then blocks with that content, each after its own length.
func hadoopBlocks(out, b []byte) (n int, err error) {
	length := func() int {
		if len(b) < 4 {
			err = errShortPage
			return 0
		}
		v := int64(binary.BigEndian.Uint32(b))
		b = b[4:]
		return int(v)
	}
	for len(b) > 0 && err == nil {
		content := length()
		if content > len(out)-n {
			return n, errShortPage
		}
		for content > 0 && err == nil {
			size := length()
			if err != nil || size > len(b) {
				return n, errShortPage
			}
			m, err := lz4.UncompressBlock(b[:size], out[n:n+content])
			if err != nil || m == 0 {
				return n, errShortPage
			}
			b, n, content = b[size:], n+m, content-m
		}
	}
	return n, err
}
