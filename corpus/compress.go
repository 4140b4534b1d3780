package corpus

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// kind is the kind of a file's content, judging by its name.
type kind struct {
	compression string // ".gz", ".zst", "", or an unsupported one
	ext         string // of the content, in lower case
	format      format
}

type format int

const (
	textFile    format = iota
	linesFile          // JSON lines, if the content agrees
	parquetFile        // read only if it is not compressed as a whole
	warcFile
)

// errCompression means that a file of documents has an unsupported compression.
var errCompression = errors.New("decompress it first: only .gz and .zst are read, and parquet under neither")

// isRead reports whether the content of the file can be read.
func (k kind) isRead() bool {
	switch k.compression {
	case "":
		return true
	case ".gz", ".zst":
		return k.format != parquetFile
	}
	return false
}

func kindOf(path string) kind {
	var k kind
	name := strings.ToLower(filepath.Base(path))
	k.ext = filepath.Ext(name)
	inner := filepath.Ext(strings.TrimSuffix(name, k.ext))
	switch k.ext {
	case ".gz", ".zst", ".zstd":
		k.compression, k.ext = k.ext[:min(len(k.ext), 4)], inner
	case ".bz2", ".xz", ".lz4":
		switch inner { // other files may be anything, such as a test of a decompressor
		case ".jsonl", ".ndjson", ".parquet", ".warc", ".wet", ".wat":
			k.compression, k.ext = k.ext, inner
		}
	}
	switch {
	case k.ext == ".jsonl", k.ext == ".ndjson", k.ext == ".json" && k.compression != "":
		k.format = linesFile
	case k.ext == ".parquet":
		k.format = parquetFile
	case k.ext == ".warc", k.ext == ".wet", k.ext == ".wat":
		k.format = warcFile
	}
	return k
}

// ExtensionOf returns the extension of a file's content, in lower case: .jsonl of crawl.JSONL.zst.
func ExtensionOf(path string) string { return kindOf(path).ext }

// jsonLines reports whether content that begins with head is JSON lines: always for .jsonl and .ndjson, for .json if
// the first line is a whole object.
func (k kind) jsonLines(head []byte) bool {
	if k.format != linesFile || k.ext != ".json" {
		return k.format == linesFile
	}
	first, _, more := bytes.Cut(bytes.TrimPrefix(head, bom), []byte("\n"))
	first = bytes.TrimSpace(first)
	return bytes.HasPrefix(first, []byte("{")) && (!more || bytes.HasSuffix(first, []byte("}")))
}

// maxWindow is the largest window of a zstd frame: that of `zstd -22 --ultra`, and the most that `zstd -d` accepts by
// default.
const maxWindow = 128 << 20

// freeExpansion is how much any stream may expand before its ratio counts; small files can have extreme ratios.
//
// It is a variable for tests.
var freeExpansion int64 = 64 << 20

var errBomb = errors.New("decompression stopped")

// bounded is the content of a file, decompressed, in bounded memory. A stream that expands too far is an error.
type bounded struct {
	disk  *meter
	ratio int64
	src   io.ReadCloser // nil where nothing is compressed
	ahead *bufio.Reader // of gzip: bytes read from the disk but not yet decompressed
	n     int64         // bytes of content so far
}

// consumed returns how many bytes on disk have become content.
func (b *bounded) consumed() int64 {
	if b.ahead == nil {
		return b.disk.n
	}
	return b.disk.n - int64(b.ahead.Buffered())
}

// open begins to decompress at the present position in the file.
func (b *bounded) open(k kind) error {
	switch k.compression {
	case ".gz":
		z := new(gzipReader)
		b.src, b.ahead = z, &z.in
		return z.Reset(b.disk)
	case ".zst":
		z, err := zstd.NewReader(b.disk, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return truncated(err)
		}
		b.src = z.IOReadCloser()
	}
	return nil
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.src == nil {
		n, err := b.disk.Read(p)
		b.n += int64(n)
		return n, err
	}
	n, err := b.src.Read(p)
	b.n += int64(n)
	if b.n > freeExpansion+b.ratio*b.disk.n {
		return 0, fmt.Errorf("%w: %d bytes became more than %d", errBomb, b.disk.n, b.n)
	}
	if err != nil && err != io.EOF {
		err = truncated(err)
	}
	return n, err
}

// Close ends the decompression.
func (b *bounded) Close() error {
	if b.src == nil {
		return nil
	}
	return b.src.Close()
}

// truncated turns the end of a cut-off stream into an error that does not look like the end of the content.
func truncated(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the stream is cut off")
	}
	return err
}
