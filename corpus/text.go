package corpus

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf8"
)

// peekBytes is the number of bytes from which the format of a file is recognised.
const peekBytes = 64 << 10

// cutter cuts the content of files into documents. Its buffers live as long as a call of Documents.
type cutter struct {
	r       *Reader
	yield   func(Document, error) bool
	in      *bufio.Reader // the content of the present file
	source  string        // its path
	file    int           // its ordinal
	index   int
	onDisk  int64  // bytes of the present file, or part of one
	offset  int64  // of the next content to be delivered or rejected
	buf     []byte // text: read but not yet delivered; lines: a line longer than the buffer of in
	line    object // lines: the members of the last one
	guessed bool   // lines: the format is a guess from the file's name and beginning
	fields  []byte // WARC: of the last record
	bodies  bodyDecoder
}

func (c *cutter) start(source string, file int) {
	c.source, c.file, c.index, c.offset, c.buf = source, file, 0, 0, c.buf[:0]
}

var bom = []byte("\xef\xbb\xbf")

// section is the length of the sections of a collection. A section begins at the first line end after a multiple of
// this length; pieces are cut within a section, so that they do not depend on the sections before it.
func (o Options) section() int64 { return 64 * int64(o.Piece) }

// isShort reports whether a file of size bytes that begins with head is one document.
func (o Options) isShort(head []byte, size int64) bool {
	if bytes.HasPrefix(head, bom) {
		size -= int64(len(bom))
	}
	return size <= int64(o.MaxDocument)
}

// text delivers a plain-text file, or a part of it: as one document if it is short enough, else in pieces.
func (c *cutter) text(p part) error {
	limit, piece := c.r.opt.MaxDocument, c.r.opt.Piece
	if need := max(limit+len(bom)+1, 2*piece); cap(c.buf) < need {
		c.buf = make([]byte, 0, need)
	}
	c.offset = p.at
	eof, err := c.fill(c.buf[:0])
	if err != nil {
		return err
	}
	rest := c.buf
	if p.at == 0 {
		head := rest[:min(len(rest), limit+1)]
		short := eof && c.r.opt.isShort(head, int64(len(rest)))
		if bytes.HasPrefix(rest, bom) {
			rest, head = rest[len(bom):], head[len(bom):]
			c.offset = int64(len(bom))
		}
		if len(rest) == 0 {
			c.pass(0, Empty, "")
			return nil
		}
		reason, valid := judge(head)
		switch {
		case reason == Binary && !short && !noise(head): // a long text with a few NUL bytes: its pieces are judged
		case reason == Binary: // an image, an archive, a program: no text is lost
			c.pass(0, reason, "")
			return nil
		case reason != "":
			c.lose(0, reason, max(c.onDisk, int64(len(rest))), "")
			return nil
		case short:
			return c.deliver(Document{Text: bytes.Clone(rest)}, valid)
		}
	} else {
		n := edge(rest, piece)
		rest = rest[n:]
		c.offset += int64(n)
	}
	section := c.r.opt.section()
	next := (c.offset/section + 1) * section // multiple behind which a section begins
	stop := int64(0)                         // where it begins, once a piece may reach it
	for c.offset < p.end || c.offset < stop {
		if !eof && len(rest) < 2*piece {
			if eof, err = c.fill(c.buf[:copy(c.buf[:cap(c.buf)], rest)]); err != nil {
				return err
			}
			rest = c.buf
		}
		if len(rest) == 0 {
			return nil
		}
		if to := next - c.offset; stop == 0 && to <= int64(piece) && to < int64(len(rest)) {
			stop = next + int64(edge(rest[to:], piece))
		}
		n := len(rest)
		if stop > 0 {
			n = min(n, int(stop-c.offset))
		}
		n = cut(rest[:n], piece)
		if reason, valid := judge(rest[:n]); reason != "" {
			c.lose(0, reason, int64(n), "")
		} else if err := c.deliver(Document{Text: bytes.Clone(rest[:n])}, valid); err != nil {
			return err
		}
		rest = rest[n:]
		if c.offset += int64(n); c.offset == stop {
			next, stop = next+section, 0
		}
	}
	return nil
}

// edge returns where a section begins in the text after a multiple of the section length: after the first line end
// within limit bytes, else at the first whole character.
func edge(text []byte, limit int) int {
	text = text[:min(len(text), limit)]
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	for n := range min(utf8.UTFMax, len(text)) {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return 0
}

// fill sets c.buf to held, followed by as many of the next bytes of the file as fit. It reports whether the file is at
// its end.
func (c *cutter) fill(held []byte) (eof bool, err error) {
	n, err := io.ReadFull(c.in, held[len(held):cap(held)])
	c.buf = held[:len(held)+n]
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return true, nil
	}
	return false, err
}

// cut returns the length of the first piece of text, at most limit. The piece ends after the last blank line in its
// second half, else after the last line end there, else between characters.
func cut(text []byte, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	half := limit / 2
	if end := max(lastEnd(text[half:limit], "\n\n"), lastEnd(text[half:limit], "\n\r\n")); end > 0 {
		return half + end
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

// judge returns the reason to reject text, empty if there is none, and whether text is valid UTF-8.
func judge(text []byte) (reason Reason, valid bool) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return UTF16, false
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return Binary, false
	}
	if valid = utf8.Valid(text); !valid && 10*invalidBytes(text) > len(text) {
		if noise(text) {
			return Binary, false
		}
		return NotUTF8, false
	}
	return "", valid
}

// noise reports whether text has more control characters than a damaged text.
func noise(text []byte) bool { return 50*controlBytes(text) > len(text) }

// controlBytes counts control characters that are rare in text of any character set; of random bytes, a tenth are such
// characters.
func controlBytes(text []byte) (n int) {
	for _, c := range text {
		if c < ' ' && (c < '\t' || c > '\r') && c != 0x1b || c == 0x7f {
			n++
		}
	}
	return n
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

// deliver passes a document to the receiver, who then owns it. valid says whether its text is UTF-8.
func (c *cutter) deliver(d Document, valid bool) error {
	rep := &c.r.report
	rep.Documents++
	rep.Bytes += int64(len(d.Text))
	if !valid {
		rep.InvalidUTF8++
	}
	d.Source, d.File, d.Index, d.Offset = c.source, c.file, c.index, c.offset
	c.index++
	if !c.yield(d, nil) {
		return errStop
	}
	return nil
}

// lastEnd returns where the last mark in text ends, or 0.
func lastEnd(text []byte, mark string) int {
	if i := bytes.LastIndex(text, []byte(mark)); i >= 0 {
		return i + len(mark)
	}
	return 0
}

// pass leaves out something that holds no text.
func (c *cutter) pass(line int, reason Reason, detail string) {
	c.r.reject(Reject{Source: c.source, Line: line, Offset: c.offset, Reason: reason, Detail: detail})
}

// lose rejects a document of the given size.
func (c *cutter) lose(line int, reason Reason, bytes int64, detail string) {
	c.r.reject(Reject{
		Source: c.source, Line: line, Offset: c.offset, Reason: reason, Detail: detail, Documents: 1, Bytes: bytes,
	})
}

// loseRest rejects the rest of the current file, for the reason in rest.
func (c *cutter) loseRest(rest Reject) {
	rest.Source, rest.Offset, rest.Rest, rest.Documents = c.source, c.offset, true, 1
	c.r.reject(rest)
}
