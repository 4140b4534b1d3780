package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	errNoField  = errors.New("the object has no such key")
	errNoString = errors.New("the value is not a string")
)

// maxNesting is how deep objects and arrays may nest, as in encoding/json.
const maxNesting = 10000

// textField returns the string under key in the JSON object on line. The whole line must be valid JSON (RFC 8259),
// except that bytes which are not UTF-8 pass unchanged inside strings. Of equal keys the last one counts, and an escaped
// half of a surrogate pair becomes U+FFFD, as in encoding/json. It exists because a line must be scanned once, at disk
// speed, with none of its other fields decoded.
func textField(line []byte, key string) ([]byte, error) {
	s := jsonScanner{b: line}
	s.space()
	if !s.take('{') {
		return nil, s.unexpected("an object")
	}
	text, found := []byte(nil), errNoField
	err := s.list('}', 0, func(name, value []byte) {
		if !nameIs(name, key) {
			return
		}
		if text, found = value, nil; value[0] != '"' {
			text, found = nil, errNoString
		}
	})
	if err != nil {
		return nil, err
	}
	s.space()
	if s.i != len(line) {
		return nil, s.unexpected("the end of the line")
	}
	if found != nil {
		return nil, found
	}
	return unquote(text), nil
}

func nameIs(quoted []byte, key string) bool {
	raw := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == key
	}
	return string(unquote(quoted)) == key
}

// jsonScanner checks one line of JSON; i is the next byte.
type jsonScanner struct {
	b []byte
	i int
}

func (s *jsonScanner) unexpected(want string) error {
	if s.i >= len(s.b) {
		return fmt.Errorf("the line ends where %s should be", want)
	}
	return fmt.Errorf("byte %d of the line is %q where %s should be", s.i, s.b[s.i], want)
}

func (s *jsonScanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\t' || s.b[s.i] == '\r' || s.b[s.i] == '\n') {
		s.i++
	}
}

func (s *jsonScanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// value passes over one value inside depth objects and arrays.
func (s *jsonScanner) value(depth int) error {
	if s.i >= len(s.b) {
		return s.unexpected("a value")
	}
	switch c := s.b[s.i]; {
	case c == '"':
		_, err := s.str()
		return err
	case c == '{':
		s.i++
		return s.list('}', depth, nil)
	case c == '[':
		s.i++
		return s.list(']', depth, nil)
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// list passes over the members of an object (end is '}') or an array, inside depth others, from behind its opening
// bracket. visit, if not nil, is called for each member; the name, quoted, is empty in an array.
func (s *jsonScanner) list(end byte, depth int, visit func(name, value []byte)) error {
	if depth >= maxNesting {
		return errors.New("nested too deeply")
	}
	s.space()
	if s.take(end) {
		return nil
	}
	for {
		var name []byte
		if end == '}' {
			var err error
			if name, err = s.str(); err != nil {
				return err
			}
			s.space()
			if !s.take(':') {
				return s.unexpected("a colon")
			}
			s.space()
		}
		start := s.i
		if err := s.value(depth + 1); err != nil {
			return err
		}
		if visit != nil {
			visit(name, s.b[start:s.i])
		}
		s.space()
		if s.take(end) {
			return nil
		}
		if !s.take(',') {
			return s.unexpected("a comma or " + string(end))
		}
		s.space()
	}
}

func (s *jsonScanner) word(w string) error {
	if !bytes.HasPrefix(s.b[s.i:], []byte(w)) {
		return s.unexpected("a value")
	}
	s.i += len(w)
	return nil
}

// number passes over -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func (s *jsonScanner) number() error {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return s.unexpected("a value")
	}
	if s.take('.') && !s.digits() {
		return s.unexpected("a digit")
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return s.unexpected("a digit")
		}
	}
	return nil
}

func (s *jsonScanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// str passes over a string and returns it with its quotes, checked.
func (s *jsonScanner) str() ([]byte, error) {
	start := s.i
	if !s.take('"') {
		return nil, s.unexpected("a string")
	}
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start:s.i], nil
		case c < ' ':
			return nil, s.unexpected("an escape instead of a control character")
		case c == '\\':
			s.i++
			if err := s.escape(); err != nil {
				return nil, err
			}
		default:
			s.i++
		}
	}
	return nil, s.unexpected("the end of a string")
}

func (s *jsonScanner) escape() error {
	if s.i >= len(s.b) || bytes.IndexByte([]byte(`"\/bfnrtu`), s.b[s.i]) < 0 {
		return s.unexpected("an escape")
	}
	s.i++
	if s.b[s.i-1] != 'u' {
		return nil
	}
	for range 4 {
		if s.i >= len(s.b) || hexValue(s.b[s.i]) < 0 {
			return s.unexpected("a hexadecimal digit")
		}
		s.i++
	}
	return nil
}

func hexValue(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}

// unquote decodes a string that str has checked.
func unquote(quoted []byte) []byte {
	raw := quoted[1 : len(quoted)-1]
	out := make([]byte, 0, len(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(out, raw...)
		}
		out = append(out, raw[:i]...)
		c := raw[i+1]
		raw = raw[i+2:]
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(raw)
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
					low = hex4(raw[2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					raw = raw[6:]
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
}

func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		r = r<<4 | hexValue(c)
	}
	return r
}
