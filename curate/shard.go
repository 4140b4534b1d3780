package curate

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"anneal/corpus"
)

// A shard is the output of a pass for the documents of a split: a file of JSON lines, in order. The line of a
// document is a corpus.Line, with the fields, the text and the place where the document was read:
//
//	{"id":7,"text":"…","anneal":{"source":"crawl/a.jsonl","offset":1234,"key":[0,0,7]}}

// shardName returns the name of the shard of a split in a directory of the output.
func shardName(dir string, split int) string { return fmt.Sprintf("%s/%05d%s", dir, split, shardEnd) }

const shardEnd = ".jsonl.zst"

// appendDocument appends the line of a document to b; place is a buffer that it uses.
func appendDocument(b, place []byte, d *Doc) (line, newPlace []byte) {
	place = appendPlace(place, d)
	if len(d.moved) > 0 {
		place = append(append(place, ','), d.moved...)
	}
	l := corpus.Line{Text: d.Text, Fields: d.Fields, Place: place}
	return l.Append(b), place
}

func appendPlace(b []byte, d *Doc) []byte {
	b = append(corpus.AppendPlace(b, d.Source, d.offset), `,"key":[`...)
	for i, n := range []int{d.Key.Source, d.Key.Split, d.Key.Row} {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, ']')
}

// appendSignals appends the measurements of a document: its place and bytes, the rule that dropped it, its numbers;
// and, so that bounds can change later, which stages changed its text and by how many bytes.
func appendSignals(b []byte, d *Doc, h *history) []byte {
	b = appendPlace(append(b, '{'), d)
	b = strconv.AppendInt(append(b, `,"bytes":`...), int64(h.bytes), 10)
	b = appendString(append(b, `,"dropped_by":`...), []byte(h.verdict.Rule))
	b = append(b, `,"signals":{`...)
	for i, s := range d.Signals {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(append(appendString(b, []byte(s.Name)), ':'), s.Value)
	}
	b = append(b, `},"changed":{`...)
	for i, c := range h.changed {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, []byte(c.stage)), ':')
		b = strconv.AppendInt(b, int64(c.cut), 10)
	}
	return append(b, "}}\n"...)
}

func appendNumber(b []byte, v float64) []byte {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// appendString appends a JSON string; bytes that are not UTF-8 become U+FFFD, one each.
func appendString(b, s []byte) []byte { return corpus.AppendString(b, valid(s)) }

// valid returns text as UTF-8, with U+FFFD in place of each invalid byte.
func valid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return []byte(string([]rune(string(text))))
}

// shardReader reads the lines of a shard.
type shardReader struct {
	f     *os.File
	z     io.Reader
	close func()
	lines *bufio.Reader
	long  []byte // a line that is longer than the buffer
	line  corpus.Line
	path  string
}

// longestLine is a limit above the length of the longest document with every byte escaped.
const longestLine = 256 << 20

// openShard opens a shard. This program writes only complete shards, so any fault in them is an error.
func openShard(dir, name string) (*shardReader, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &shardReader{f: f, close: func() { f.Close() }, path: path}
	if filepath.Ext(path) == ".s2" {
		r.z = s2.NewReader(f)
	} else {
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			f.Close()
			return nil, err
		}
		r.z, r.close = z, func() { z.Close(); f.Close() }
	}
	r.lines = bufio.NewReaderSize(r.z, 1<<18)
	return r, nil
}

// read returns how many bytes of the file have been read.
func (r *shardReader) read() int64 {
	n, _ := r.f.Seek(0, io.SeekCurrent)
	return n
}

// next returns a line, valid until the next call; io.EOF after the last one.
func (r *shardReader) next() ([]byte, error) {
	line, err := r.lines.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		r.long = append(r.long[:0], line...)
		for err == bufio.ErrBufferFull {
			if len(r.long) > longestLine {
				return nil, fmt.Errorf("read %s: a line of more than %d MiB", r.path, longestLine>>20)
			}
			line, err = r.lines.ReadSlice('\n')
			r.long = append(r.long, line...)
		}
		line = r.long
	}
	if err == io.EOF && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read %s: %w", r.path, err)
	}
	return line, err
}

// documents reads the documents of a shard.
func (r *shardReader) documents() iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		for {
			line, err := r.next()
			if err == io.EOF {
				return
			}
			var d item
			if err == nil {
				d, err = parseDocument(&r.line, line)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// item is a document with its place in the order.
type item struct {
	Key Key
	corpus.Document
}

// parseDocument reads a line of appendDocument; l is a buffer that it uses.
func parseDocument(l *corpus.Line, line []byte) (d item, err error) {
	if err := l.Parse(line); err != nil {
		return d, fmt.Errorf("damaged line of a document: %w: %.60q", err, line)
	}
	d.Document = l.Document()
	p := lineParser{rest: l.Place}
	p.take(`"source":"`)
	d.Source = string(p.until('"'))
	p.take(`,"offset":`)
	d.Offset = p.number(',')
	d.Key = p.key()
	if len(p.rest) > 0 {
		p.take(",")
		d.Moved = bytes.Clone(p.rest)
	}
	if p.bad {
		return d, fmt.Errorf("damaged line of a document, without its place: %.60q", line)
	}
	d.Index = d.Key.Row
	return d, nil
}

// lineParser parses a line.
type lineParser struct {
	rest []byte
	bad  bool
}

func (l *lineParser) take(s string) {
	rest, ok := bytes.CutPrefix(l.rest, []byte(s))
	l.rest, l.bad = rest, l.bad || !ok
}

// until reads a string up to its end.
func (l *lineParser) until(end byte) []byte {
	for i := 0; i < len(l.rest); i++ {
		switch l.rest[i] {
		case '\\':
			i++
		case end:
			s := unescape(l.rest[:i])
			l.rest = l.rest[i+1:]
			return s
		}
	}
	l.bad = true
	return nil
}

// key reads the key of a document; number has read the comma before it.
func (l *lineParser) key() (k Key) {
	l.take(`"key":[`)
	k.Source, k.Split, k.Row = int(l.number(',')), int(l.number(',')), int(l.number(']'))
	return k
}

func (l *lineParser) number(end byte) int64 {
	i := bytes.IndexByte(l.rest, end)
	if i < 0 {
		l.bad = true
		return 0
	}
	n, err := strconv.ParseInt(string(l.rest[:i]), 10, 64)
	l.rest, l.bad = l.rest[i+1:], l.bad || err != nil
	return n
}

// unescape undoes corpus.AppendString.
func unescape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			return append(out, s...)
		}
		out = append(out, s[:i]...)
		c := s[i+1]
		s = s[i+2:]
		switch {
		case c == 'n':
			c = '\n'
		case c == 't':
			c = '\t'
		case c == 'r':
			c = '\r'
		case c == 'u' && len(s) >= 4:
			n, _ := strconv.ParseUint(string(s[2:4]), 16, 8)
			c, s = byte(n), s[4:]
		}
		out = append(out, c)
	}
}
