package corpus

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines delivers the text of each line of JSON that begins in p. Blank lines are passed over; a broken one is rejected
// by itself, with its number where the lines before it were seen.
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
		size, tooLong, err := c.line()
		if err != nil && err != io.EOF {
			return err
		}
		if tooLong {
			seen = true
			c.reject(number, LongLine, "")
		} else if len(bytes.TrimSpace(c.buf)) > 0 {
			seen = true
			if err := c.object(number); err != nil {
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
		c.reject(0, Empty, "")
	}
	return nil
}

// passLine goes to the next line, or to the first byte behind end if that comes first.
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

// line reads a line into c.buf without its end. It returns how many bytes it took, and whether the line was longer
// than allowed, in which case c.buf holds only a part of it.
func (c *cutter) line() (size int64, tooLong bool, err error) {
	c.buf = c.buf[:0]
	for {
		part, err := c.in.ReadSlice('\n')
		size += int64(len(part))
		if len(c.buf)+len(part) <= c.r.opt.MaxLine+1 {
			c.buf = append(c.buf, part...)
		} else {
			tooLong = true
		}
		if err != bufio.ErrBufferFull {
			c.buf = bytes.TrimSuffix(c.buf, []byte("\n"))
			return size, tooLong || len(c.buf) > c.r.opt.MaxLine, err
		}
	}
}

// object delivers the text of the object in c.buf.
func (c *cutter) object(number int) error {
	text, err := textField(c.buf, c.r.opt.TextField)
	reason := Reason("")
	switch {
	case errors.Is(err, errNoField):
		reason = NoText
	case errors.Is(err, errNoString):
		reason = TextNoString
	case err != nil:
		reason = BadJSON
	case len(text) == 0:
		reason = Empty
	default:
		reason = judge(text)
	}
	if reason == "" {
		return c.deliver(text)
	}
	detail := ""
	if err != nil {
		detail = err.Error()
	}
	c.reject(number, reason, detail)
	return nil
}
