package corpus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	errNoField  = errors.New("the object has no such key")
	errNoString = errors.New("the value is not a string")
	errNull     = errors.New("the value is null")
)

// maxNesting is the largest depth of nested objects and arrays, as in encoding/json.
const maxNesting = 10000

// object is the content of a line of JSON. Its memory is reused for the next line.
type object struct {
	text   []byte // the string under the key
	fields []byte // the other members, as they stand on the line, with commas between
	moved  []byte // members with reserved names, see appendField
	name   []byte // parquet: of the current column
}

// parse reads the JSON object on line, with the text under key, and the other members if fields is true. The whole
// line must be valid JSON (RFC 8259), except that bytes which are not UTF-8 pass unchanged inside strings. If the key
// occurs several times, the last value counts; an escaped half of a surrogate pair becomes U+FFFD. Both are as in
// encoding/json. Unlike it, parse scans a line once, at disk speed, and decodes no other field.
func (o *object) parse(line []byte, key string, fields bool) error {
	s := jsonScanner{b: line}
	s.space()
	if !s.take('{') {
		return s.unexpected("an object")
	}
	o.fields, o.moved = o.fields[:0], o.moved[:0]
	found := errNoField
	err := s.list('}', 0, func(name []byte) (err error) {
		start := s.i
		if !nameIs(name, key) {
			if err = s.value(1); err == nil && fields {
				o.fields, o.moved = appendField(o.fields, o.moved, name, line[start:s.i])
			}
			return err
		}
		switch {
		case start == len(line):
		case line[start] == '"':
			found = nil
			text, err := s.decode(o.text[:0])
			if err == nil {
				o.text = text
			}
			return err
		case line[start] == 'n':
			found = errNull
			return s.value(1)
		}
		found = errNoString
		return s.value(1)
	})
	if err != nil {
		return err
	}
	s.space()
	if s.i != len(line) {
		return s.unexpected("the end of the line")
	}
	return found
}

func nameIs(quoted []byte, key string) bool {
	raw := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == key
	}
	s := jsonScanner{b: quoted}
	name, err := s.decode(nil)
	return err == nil && string(name) == key
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

// value skips a value inside depth objects and arrays.
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

// list skips the members of an object (end is '}') or an array, inside depth others, after its opening bracket.
// member, if not nil, skips a value instead; the name is quoted, and empty in an array.
func (s *jsonScanner) list(end byte, depth int, member func(name []byte) error) error {
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
		var err error
		if member != nil {
			err = member(name)
		} else {
			err = s.value(depth + 1)
		}
		if err != nil {
			return err
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

// number skips -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
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

// str checks a string and returns it with its quotes.
func (s *jsonScanner) str() ([]byte, error) {
	start := s.i
	if !s.take('"') {
		return nil, s.unexpected("a string")
	}
	for {
		s.i += plainBytes(s.b[s.i:])
		if s.i >= len(s.b) {
			return nil, s.unexpected("the end of a string")
		}
		switch s.b[s.i] {
		case '"':
			s.i++
			return s.b[start:s.i], nil
		case '\\':
			s.i++
			if err := s.escape(); err != nil {
				return nil, err
			}
		default:
			return nil, s.unexpected("an escape instead of a control character")
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// zeros marks the lowest byte of w that is 0 by its highest bit, and perhaps bytes above it.
func zeros(w uint64) uint64 { return (w - ones) & ^w & highs }

// special marks the lowest byte of w that ends a run of plain bytes, and perhaps bytes above it.
func special(w uint64) uint64 {
	return zeros(w^ones*'"') | zeros(w^ones*'\\') | (w-ones*' ')&^w&highs
}

// plainBytes returns the number of bytes of a JSON string before its end, an escape or a control character.
func plainBytes(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// unescaped holds the byte for each letter after a backslash, except u; 0 if there is no such escape.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (s *jsonScanner) escape() error {
	if s.i >= len(s.b) || unescaped[s.b[s.i]] == 0 && s.b[s.i] != 'u' {
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

// decode reads a string like str and returns its value, in dst if that is large enough. Plain bytes are copied eight
// at a time, possibly beyond an escape, which the next step overwrites.
func (s *jsonScanner) decode(dst []byte) ([]byte, error) {
	b := s.b
	i := s.i + 1 // behind the quote
	if need := len(b) - i + 8; cap(dst) < need {
		dst = make([]byte, need)
	}
	out, n := dst[:cap(dst)], 0 // n never grows more than i
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			binary.LittleEndian.PutUint64(out[n:], w)
			if m := special(w); m != 0 {
				i, n = i+bits.TrailingZeros64(m)/8, n+bits.TrailingZeros64(m)/8
				break
			}
			i, n = i+8, n+8
		}
		for i+8 > len(b) && i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
			out[n] = b[i]
			i, n = i+1, n+1
		}
		s.i = i
		switch {
		case i >= len(b):
			return nil, s.unexpected("the end of a string")
		case b[i] == '"':
			s.i++
			return out[:n], nil
		case b[i] != '\\':
			return nil, s.unexpected("an escape instead of a control character")
		}
		if i+1 < len(b) && unescaped[b[i+1]] != 0 {
			out[n] = unescaped[b[i+1]]
			i, n = i+2, n+1
			continue
		}
		s.i++
		if err := s.escape(); err != nil {
			return nil, err
		}
		r := hex4(b[i+2:])
		i += 6
		if utf16.IsSurrogate(r) {
			s.i = i + 1
			low := rune(-1)
			if i+1 < len(b) && b[i] == '\\' && b[i+1] == 'u' && s.escape() == nil {
				low = hex4(b[i+2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		n += utf8.EncodeRune(out[n:], r)
	}
}

func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		r = r<<4 | hexValue(c)
	}
	return r
}
