package corpus

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf8"
)

// peekBytes is how much of a file is looked at before it is known what it is.
const peekBytes = 64 << 10

// cutter cuts the content of files into documents. Its buffers live as long as a call of Documents.
type cutter struct {
	r      *Reader
	yield  func(Document, error) bool
	in     *bufio.Reader // the content of the present file
	source string        // its path
	index  int
	offset int64  // of what was not yet delivered or rejected
	buf    []byte // text: what was read and not yet delivered; lines: the current line
}

func (c *cutter) start(source string) { c.source, c.index, c.offset, c.buf = source, 0, 0, c.buf[:0] }

var bom = []byte("\xef\xbb\xbf")

// text cuts a plain-text file: whole if it is short enough, else in pieces.
func (c *cutter) text() error {
	limit := c.r.opt.MaxDocument
	if cap(c.buf) < limit+1 {
		c.buf = make([]byte, 0, limit+1)
	}
	eof, err := c.fill(c.buf[:0])
	if err != nil {
		return err
	}
	rest := c.buf
	if bytes.HasPrefix(rest, bom) {
		rest = rest[len(bom):]
		c.offset = int64(len(bom))
	}
	if len(rest) == 0 {
		c.reject(0, Empty, "")
		return nil
	}
	if reason := judge(rest); reason != "" {
		c.reject(0, reason, "")
		return nil
	}
	if eof && len(rest) <= limit {
		return c.deliver(bytes.Clone(rest))
	}
	for {
		if !eof && len(rest) <= c.r.opt.Piece {
			if eof, err = c.fill(c.buf[:copy(c.buf[:cap(c.buf)], rest)]); err != nil {
				return err
			}
			rest = c.buf
		}
		if len(rest) == 0 {
			return nil
		}
		n := cut(rest, c.r.opt.Piece)
		if reason := judge(rest[:n]); reason != "" {
			c.reject(0, reason, "")
		} else if err := c.deliver(bytes.Clone(rest[:n])); err != nil {
			return err
		}
		rest = rest[n:]
		c.offset += int64(n)
	}
}

// fill sets c.buf to held and what follows it in the file, as much as fits. It reports whether the file is at its end.
func (c *cutter) fill(held []byte) (eof bool, err error) {
	n, err := io.ReadFull(c.in, held[len(held):cap(held)])
	c.buf = held[:len(held)+n]
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return true, nil
	}
	return false, err
}

// cut is where to end the first piece of text, at most limit bytes long: after the last blank line of its second half,
// else after the last line end there, else before a broken character.
func cut(text []byte, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	half := limit / 2
	if i := bytes.LastIndex(text[half:limit], []byte("\n\n")); i >= 0 {
		return half + i + 2
	}
	if i := bytes.LastIndexByte(text[half:limit], '\n'); i >= 0 {
		return half + i + 1
	}
	for n := limit; n > max(limit-utf8.UTFMax, 0); n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return limit
}

// judge says why text is not a document; the empty reason means that it is.
func judge(text []byte) Reason {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return UTF16
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return Binary
	}
	if !utf8.Valid(text) && 10*invalidBytes(text) > len(text) {
		return NotUTF8
	}
	return ""
}

func invalidBytes(text []byte) int {
	bad := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		i += n
	}
	return bad
}

// deliver hands text over; from then on it belongs to the receiver.
func (c *cutter) deliver(text []byte) error {
	rep := &c.r.report
	rep.Documents++
	rep.Bytes += int64(len(text))
	if !utf8.Valid(text) {
		rep.InvalidUTF8++
	}
	d := Document{Source: c.source, Index: c.index, Offset: c.offset, Text: text}
	c.index++
	if !c.yield(d, nil) {
		return errStop
	}
	return nil
}

func (c *cutter) reject(line int, reason Reason, detail string) {
	c.r.reject(Reject{Source: c.source, Line: line, Offset: c.offset, Reason: reason, Detail: detail})
}
