package corpus

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

var gzipMagic = []byte("\x1f\x8b")

// gzipReader reads the members of a gzip stream (RFC 1952). What follows the last member is no part of it: tapes and
// some downloads pad files with zeros, and some servers send a line end after a body.
type gzipReader struct {
	in      bufio.Reader
	member  gzip.Reader
	anyRest bool // anything may follow, not only zeros
	err     error
}

// Reset begins with the first member of src.
func (g *gzipReader) Reset(src io.Reader) error {
	g.in.Reset(src)
	g.err = g.open()
	return g.err
}

func (g *gzipReader) open() error {
	if err := g.member.Reset(&g.in); err != nil {
		return truncated(err)
	}
	g.member.Multistream(false)
	return nil
}

func (g *gzipReader) Read(p []byte) (n int, err error) {
	for n == 0 && g.err == nil {
		if n, g.err = g.member.Read(p); g.err == io.EOF {
			g.err = g.next()
		}
	}
	return n, g.err
}

// next begins with the member that follows. At the end of the last one the error is io.EOF.
func (g *gzipReader) next() error {
	head, err := g.in.Peek(len(gzipMagic))
	switch {
	case bytes.Equal(head, gzipMagic):
		return g.open()
	case err != nil && err != io.EOF:
		return err
	case g.anyRest:
		return io.EOF
	}
	for {
		b, err := g.in.ReadByte()
		if err != nil {
			return err
		}
		if b != 0 {
			g.in.UnreadByte() // it counts as lost
			return errors.New("gzip: something else follows the stream")
		}
	}
}

// Close ends the decompression.
func (g *gzipReader) Close() error { return g.member.Close() }
