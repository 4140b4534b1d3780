package dash

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// A field is a number in a line of metrics. A number in a nested object or array has a name such as
// grad_norms.layers.3. null is NaN, true is 1 and false is 0; texts are left out.
type field struct {
	name  []byte // valid until the next line is scanned
	value float64
}

// scanner reads lines of metrics.jsonl: JSON objects. A run of a million steps has as many of them, so this is
// written for speed; a test compares it with encoding/json.
type scanner struct {
	text   []byte
	at     int
	names  []byte // the joined names of nested numbers
	fields []field
}

const (
	maxDepth  = 4       // of nested objects and arrays
	maxFields = 4096    // of a line
	maxName   = 256     // bytes of a name
	maxNames  = 1 << 20 // bytes of the joined names of a line
)

var errLine = errors.New("the line is not an object of numbers")

// scan returns the numbers of a line, valid until the next call.
func (s *scanner) scan(line []byte) ([]field, error) {
	s.text, s.at, s.names, s.fields = line, 0, s.names[:0], s.fields[:0]
	s.space()
	if s.at >= len(s.text) || s.text[s.at] != '{' {
		return nil, errLine
	}
	if err := s.object(nil, 0); err != nil {
		return nil, err
	}
	if s.space(); s.at != len(s.text) {
		return nil, errLine
	}
	return s.fields, nil
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// take skips the given byte and reports whether it was there.
func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) object(prefix []byte, depth int) error {
	return s.items('{', '}', depth, func(int) error {
		key, err := s.key()
		if err != nil {
			return err
		}
		if s.space(); !s.take(':') {
			return errLine
		}
		s.space()
		name, err := s.join(prefix, key)
		if err != nil {
			return err
		}
		return s.value(name, depth)
	})
}

func (s *scanner) array(prefix []byte, depth int) error {
	return s.items('[', ']', depth, func(i int) error {
		name, err := s.join(prefix, strconv.AppendInt(nil, int64(i), 10))
		if err != nil {
			return err
		}
		return s.value(name, depth)
	})
}

// items reads the elements between brackets, separated by commas.
func (s *scanner) items(open, end byte, depth int, item func(i int) error) error {
	if depth > maxDepth || !s.take(open) {
		return errLine
	}
	if s.space(); s.take(end) {
		return nil
	}
	for i := 0; ; i++ {
		s.space()
		if err := item(i); err != nil {
			return err
		}
		s.space()
		if s.take(end) {
			return nil
		}
		if !s.take(',') {
			return errLine
		}
	}
}

// join returns prefix.key, or an error where names are too long.
func (s *scanner) join(prefix, key []byte) ([]byte, error) {
	if len(prefix)+1+len(key) > maxName || len(s.names) > maxNames {
		return nil, errLine
	}
	if len(prefix) == 0 {
		return key, nil
	}
	from := len(s.names)
	s.names = append(append(append(s.names, prefix...), '.'), key...)
	return s.names[from:len(s.names):len(s.names)], nil
}

func (s *scanner) value(name []byte, depth int) error {
	if s.at >= len(s.text) {
		return errLine
	}
	switch c := s.text[s.at]; {
	case c == '-' || c >= '0' && c <= '9':
		x, err := s.number()
		return errors.Join(err, s.add(name, x))
	case c == '"':
		_, err := s.key()
		return err
	case c == '{':
		return s.object(name, depth+1)
	case c == '[':
		return s.array(name, depth+1)
	case s.word("null"):
		return s.add(name, math.NaN())
	case s.word("true"):
		return s.add(name, 1)
	case s.word("false"):
		return s.add(name, 0)
	}
	return errLine
}

func (s *scanner) add(name []byte, x float64) error {
	if len(s.fields) == maxFields {
		return errLine
	}
	s.fields = append(s.fields, field{name, x})
	return nil
}

func (s *scanner) word(w string) bool {
	if len(s.text)-s.at < len(w) || string(s.text[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// key reads a string. It leaves strings with escapes to encoding/json.
func (s *scanner) key() ([]byte, error) {
	from, escaped := s.at, false
	if !s.take('"') {
		return nil, errLine
	}
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\':
			escaped = true
			s.at++
		case c < ' ':
			return nil, errLine
		case c == '"':
			s.at++
			if !escaped {
				return s.text[from+1 : s.at-1], nil
			}
			var text string
			if json.Unmarshal(s.text[from:s.at], &text) != nil {
				return nil, errLine
			}
			return []byte(text), nil
		}
	}
	return nil, errLine
}

// number reads a JSON number. One beyond the range of float64 is an error.
func (s *scanner) number() (float64, error) {
	from := s.at
	s.take('-')
	switch {
	case s.take('0'):
	case !s.digits():
		return 0, errLine
	}
	if s.take('.') && !s.digits() {
		return 0, errLine
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return 0, errLine
		}
	}
	x, err := strconv.ParseFloat(string(s.text[from:s.at]), 64)
	if err != nil {
		return 0, errLine
	}
	return x, nil
}

// digits skips digits and reports whether there was at least one.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}
