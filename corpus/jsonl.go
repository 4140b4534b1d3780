package corpus

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines delivers each line of JSON that begins in p. Blank lines are ignored. An invalid line is rejected without
// affecting other lines, with its number if the lines before it were read.
func (c *cutter) lines(p part) error {
	c.offset = p.at
	if p.at > 0 {
		if err := c.passLine(p.end); err != nil {
			return err
		}
	} else if head, _ := c.in.Peek(len(bom)); bytes.Equal(head, bom) {
		c.in.Discard(len(bom))
		c.offset = int64(len(bom))
	}
	seen := false
	number := 0
	for first := p.at == 0; first || c.offset <= p.end; first = false {
		if p.at == 0 {
			number++
		}
		line, size, tooLong, err := c.nextLine()
		if err != nil && err != io.EOF {
			return err
		}
		if tooLong {
			seen = true
			c.lose(number, LongLine, size, "")
		} else if len(bytes.TrimSpace(line)) > 0 {
			seen = true
			if err := c.object(line, size, number); err != nil {
				return err
			}
		}
		c.offset += size
		if err == io.EOF {
			break
		}
	}
	if !seen && p == whole {
		c.offset = 0
		c.pass(0, Empty, "")
	}
	return nil
}

// passLine goes to the next line, or to the first byte after end if that comes first.
func (c *cutter) passLine(end int64) error {
	for c.offset <= end {
		part, err := c.in.ReadSlice('\n')
		c.offset += int64(len(part))
		if err == nil || err == io.EOF {
			return nil
		}
		if err != bufio.ErrBufferFull {
			return err
		}
	}
	return nil
}

// nextLine returns a line without its end, valid until the next call, and the number of bytes read. Of a
// line that is too long, only a part is returned.
func (c *cutter) nextLine() (line []byte, size int64, tooLong bool, err error) {
	line, err = c.in.ReadSlice('\n')
	size = int64(len(line))
	if err == bufio.ErrBufferFull {
		c.buf = append(c.buf[:0], line...)
		for err == bufio.ErrBufferFull {
			line, err = c.in.ReadSlice('\n')
			size += int64(len(line))
			if len(c.buf)+len(line) <= c.r.opt.MaxLine+1 {
				c.buf = append(c.buf, line...)
			} else {
				tooLong = true
			}
		}
		line = c.buf
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return line, size, tooLong || len(line) > c.r.opt.MaxLine, err
}

// object delivers the document on a line of size bytes.
func (c *cutter) object(line []byte, size int64, number int) error {
	o := &c.line
	err := o.parse(line, c.r.opt.TextField, c.r.opt.Fields)
	reason, valid := Reason(""), false
	switch {
	case errors.Is(err, errNull):
		c.pass(number, Null, "")
		return nil
	case errors.Is(err, errNoField) && number == 1 && c.guessed && c.atEnd():
		c.pass(number, NotText, "one line of JSON without a text field")
		return nil
	case errors.Is(err, errNoField):
		reason = NoText
	case errors.Is(err, errNoString):
		reason = TextNoString
	case err != nil:
		reason = BadJSON
	case len(o.text) == 0:
		c.pass(number, Empty, "")
		return nil
	default:
		reason, valid = judge(o.text)
	}
	if reason == "" {
		return c.deliver(owned(o.text, o.fields, o.moved), valid)
	}
	detail := ""
	if err != nil {
		detail = err.Error()
	}
	c.lose(number, reason, size, detail)
	return nil
}

// atEnd reports whether only blanks follow in the file.
func (c *cutter) atEnd() bool {
	rest, err := c.in.Peek(peekBytes)
	return err == io.EOF && len(bytes.TrimSpace(rest)) == 0
}

// owned returns a document with copies of these parts, in one allocation.
func owned(text, fields, moved []byte) Document {
	all := make([]byte, 0, len(text)+len(fields)+len(moved))
	all = append(append(append(all, text...), fields...), moved...)
	n, m := len(text), len(text)+len(fields)
	d := Document{Text: all[:n:n]}
	if m > n {
		d.Fields = all[n:m:m]
	}
	if len(all) > m {
		d.Moved = all[m:]
	}
	return d
}
