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
		line, size, tooLong, err := c.line()
		if err != nil && err != io.EOF {
			return err
		}
		if tooLong {
			seen = true
			c.reject(number, LongLine, "")
		} else if len(bytes.TrimSpace(line)) > 0 {
			seen = true
			if err := c.object(line, number); err != nil {
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

// line reads a line and returns it without its end, good until the next read, with the number of bytes it took. If it is
// longer than allowed only a part of it is kept.
func (c *cutter) line() (line []byte, size int64, tooLong bool, err error) {
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

// object delivers the text of the object on a line.
func (c *cutter) object(line []byte, number int) error {
	text, err := textField(c.decoded, line, c.r.opt.TextField)
	reason, valid, detail := Reason(""), false, ""
	if err == nil {
		c.decoded = text
	}
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
		reason, valid = judge(text)
	}
	if reason == "" {
		return c.deliver(bytes.Clone(text), valid)
	}
	if err != nil {
		detail = err.Error()
	}
	c.reject(number, reason, detail)
	return nil
}
