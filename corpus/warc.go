package corpus

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"anneal/extract"
)

// magic begins a record, of version 1.0 or 1.1.
const magic = "WARC/1."

// maxHead is the most bytes that the head of a WARC record may have.
const maxHead = 64 << 10

// record is the header of a WARC record (ISO 28500).
type record struct {
	kind, url, date, id, media string
	size                       int64 // of the content; -1 if not given
}

// isHTTP reports whether the content is an HTTP response. Content of other protocols, such as a DNS look-up, has the
// media type that the record states.
func (r *record) isHTTP() bool {
	switch media := mediaType(r.media); {
	case r.kind != "response":
		return false
	case media == "":
		return strings.HasPrefix(r.url, "http://") || strings.HasPrefix(r.url, "https://")
	default:
		return media == "application/http"
	}
}

// warc delivers the text of conversions, resources and HTTP responses: text/plain as it is, and the main text of HTML.
// Records about the crawl itself are ignored. After a broken record, reading continues at the next line that begins a
// record. A text is delivered only if its record has the length that it claims. size is the size of the content, or
// math.MaxInt64 if unknown.
func (c *cutter) warc(size int64) error {
	seen := false
	for number := 1; ; number++ {
		start, err := c.blankLines()
		if err == io.EOF {
			break
		}
		seen = true
		if err != nil {
			return err
		}
		rec, fault, err := c.head()
		after := c.offset
		c.offset = start // the offset of deliveries and rejects
		if err != nil {
			return truncated(err)
		}
		beyond := rec.size > size-after
		if fault == "" && rec.size < 0 {
			fault = "no Content-Length"
		} else if fault == "" && beyond {
			fault = fmt.Sprintf("Content-Length is %d, and the file ends before", rec.size)
		}
		if fault == "" {
			var taken int64
			taken, fault, err = c.record(rec, number)
			after += taken
			if err != nil {
				return err
			}
		}
		if c.offset = after; fault == "" {
			continue
		}
		err = c.nextRecord()
		next := c.offset
		c.offset = start
		if _, end := c.in.Peek(1); beyond && end == io.EOF {
			return truncated(end) // no record follows: this one is the last, and truncated
		}
		c.lose(number, BadRecord, next-start, fault)
		c.offset = next
		if err != nil {
			return err
		}
	}
	if !seen {
		c.offset = 0
		c.pass(0, Empty, "")
	}
	return nil
}

// blankLines goes to the next line that is not blank and returns its offset.
func (c *cutter) blankLines() (int64, error) {
	for {
		b, err := c.in.Peek(1)
		if len(b) == 0 {
			return c.offset, err
		}
		if b[0] != '\r' && b[0] != '\n' {
			return c.offset, nil
		}
		c.in.Discard(1)
		c.offset++
	}
}

// nextRecord goes to the next line that looks like the beginning of a record.
func (c *cutter) nextRecord() error {
	for begin := true; ; {
		if begin {
			if b, _ := c.in.Peek(len(magic)); string(b) == magic {
				return nil
			}
		}
		line, err := c.in.ReadSlice('\n')
		c.offset += int64(len(line))
		if err != nil && err != bufio.ErrBufferFull {
			if err == io.EOF {
				return nil
			}
			return err
		}
		begin = err == nil
	}
}

// head reads the head of a record. A fault is about the record, an error about the stream.
func (c *cutter) head() (rec record, fault string, err error) {
	rec.size = -1
	for size := 0; ; {
		line, err := c.in.ReadSlice('\n')
		c.offset += int64(len(line))
		if first := size == 0; first && !bytes.HasPrefix(line, []byte(magic)) {
			return rec, fmt.Sprintf("%q where a record should begin", line[:min(len(line), 40)]), nil
		}
		if size += len(line); size > maxHead || err == bufio.ErrBufferFull {
			return rec, fmt.Sprintf("a header of more than %d bytes", maxHead), nil
		}
		if err != nil {
			return rec, "", err
		}
		name, value, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		if name == "" {
			return rec, "", nil
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "warc-type":
			rec.kind = strings.ToLower(value)
		case "warc-target-uri":
			rec.url = strings.TrimSuffix(strings.TrimPrefix(value, "<"), ">") // as WARC 1.0 writes it
		case "warc-date":
			rec.date = value
		case "warc-record-id":
			rec.id = value
		case "content-type":
			rec.media = value
		case "content-length":
			if rec.size, err = strconv.ParseInt(value, 10, 64); err != nil || rec.size < 0 {
				return rec, fmt.Sprintf("Content-Length is %.40q", value), nil
			}
		}
	}
}

// record delivers or rejects the content after a head, and returns its length. A fault is about the record.
func (c *cutter) record(rec record, number int) (taken int64, fault string, err error) {
	wanted := rec.kind == "conversion" || rec.kind == "resource" || rec.kind == "response"
	tooLong := wanted && rec.size > int64(c.r.opt.MaxLine)
	if wanted && !tooLong {
		err = c.take(int(rec.size))
	} else {
		for left := rec.size; left > 0 && err == nil; {
			n := 0
			n, err = c.in.Discard(int(min(left, 1<<30)))
			left -= int64(n)
		}
	}
	if err != nil {
		return 0, "", truncated(err)
	}
	if end, _ := c.in.Peek(4 + len(magic)); !endsRecord(end) {
		return rec.size, fmt.Sprintf("Content-Length is %d, and the record does not end there", rec.size), nil
	}
	switch {
	case !wanted:
		return rec.size, "", nil
	case tooLong:
		c.lose(number, TooLong, rec.size, fmt.Sprintf("%d bytes", rec.size))
		return rec.size, "", nil
	}
	reply := httpResponse{media: rec.media, body: c.buf}
	if rec.isHTTP() {
		if reply, err = c.bodies.response(c.buf, c.r.opt.MaxLine); err != nil {
			return rec.size, err.Error(), nil
		}
	}
	return rec.size, "", c.page(rec, reply, number)
}

// page delivers or rejects the content of a record.
func (c *cutter) page(rec record, reply httpResponse, number int) error {
	text, media := reply.body, mediaType(reply.media)
	page := isHTML(media)
	var err error
	if page && reply.unwanted == "" && reply.unread == "" {
		text, err = extract.Text(text, reply.media)
	}
	switch {
	case reply.unwanted != "":
		c.pass(number, NotText, reply.unwanted)
		return nil
	case !page && media != "text/plain":
		c.pass(number, NotText, cmp.Or(media, "no media type"))
		return nil
	case reply.unread != "":
		c.lose(number, BadBody, rec.size, reply.unread)
		return nil
	case err != nil:
		c.lose(number, TooLong, rec.size, err.Error())
		return nil
	case page && len(text) == 0:
		c.pass(number, NoMainText, "")
		return nil
	case len(text) == 0:
		c.pass(number, Empty, "")
		return nil
	case len(text) > c.r.opt.MaxLine: // it was shorter in its own character set
		c.lose(number, TooLong, rec.size, fmt.Sprintf("%d bytes", len(text)))
		return nil
	}
	reason, valid := judge(text)
	if reason != "" {
		c.lose(number, reason, rec.size, "")
		return nil
	}
	c.fields = c.fields[:0]
	if c.r.opt.Fields {
		c.fields = rec.appendFields(c.fields, reply)
	}
	if page && len(c.fields) == 0 {
		return c.deliver(Document{Text: text}, valid)
	}
	return c.deliver(owned(text, c.fields, nil), valid)
}

// appendFields appends what the heads say about the text.
func (r *record) appendFields(b []byte, reply httpResponse) []byte {
	for _, f := range []struct{ name, value string }{
		{`"url"`, r.url}, {`"date"`, r.date}, {`"id"`, r.id}, {`"content_type"`, reply.media},
	} {
		if f.value != "" {
			b = appendMember(b, []byte(f.name), AppendString(nil, []byte(f.value)))
		}
	}
	if reply.status > 0 {
		b = appendMember(b, []byte(`"http_status"`), strconv.AppendInt(nil, int64(reply.status), 10))
	}
	return b
}

// endsRecord reports whether a record can end before these bytes: line ends, then another record or nothing.
func endsRecord(follows []byte) bool {
	next := bytes.TrimLeft(follows, "\r\n")
	if len(follows) > 0 && len(next) == len(follows) {
		return false
	}
	return strings.HasPrefix(magic, string(next[:min(len(next), len(magic))]))
}

// take reads n bytes into c.buf, which grows as they arrive.
func (c *cutter) take(n int) error {
	c.buf = c.buf[:0]
	for len(c.buf) < n {
		c.buf = slices.Grow(c.buf, min(n-len(c.buf), 64<<10))
		m, err := c.in.Read(c.buf[len(c.buf):min(n, cap(c.buf))])
		c.buf = c.buf[:len(c.buf)+m]
		if err != nil && len(c.buf) < n {
			return err
		}
	}
	return nil
}
