package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// jsonCursor iterates over JSON that is known to be well-formed (checkJSON). It yields vocabularies of a million
// entries one by one, where encoding/json would build a map, and it detects duplicate keys.
type jsonCursor struct {
	data []byte
	pos  int
}

// checkJSON reports the first syntax error with its offset. data must hold an object.
func checkJSON(data []byte) error {
	var nothing struct{}
	err := json.Unmarshal(data, &nothing)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("at byte %d: %w", syntax.Offset, err)
	}
	if err != nil {
		return errors.New("not a JSON object")
	}
	return nil
}

// peek returns the first byte of the next value, after white space.
func (c *jsonCursor) peek() byte {
	for {
		switch b := c.data[c.pos]; b {
		case ' ', '\t', '\r', '\n', ',', ':':
			c.pos++
		default:
			return b
		}
	}
}

// object calls f for each key of the object at the cursor; f must consume the value. A value that is not an object is
// an error.
func (c *jsonCursor) object(f func(key []byte) error) error {
	if c.peek() != '{' {
		return fmt.Errorf("expected an object, got %.40s", c.value())
	}
	c.pos++
	for c.peek() != '}' {
		if err := f(c.str()); err != nil {
			return err
		}
	}
	c.pos++
	return nil
}

// array calls f for each element of the array at the cursor; f must consume it.
func (c *jsonCursor) array(f func(i int) error) error {
	if c.peek() != '[' {
		return fmt.Errorf("expected an array, got %.40s", c.value())
	}
	c.pos++
	for i := 0; c.peek() != ']'; i++ {
		if err := f(i); err != nil {
			return err
		}
	}
	c.pos++
	return nil
}

// value consumes any value and returns its text.
func (c *jsonCursor) value() []byte {
	c.peek()
	start, depth := c.pos, 0
	for {
		switch c.peek() {
		case '{', '[':
			depth++
			c.pos++
		case '}', ']':
			depth--
			c.pos++
		case '"':
			c.rawString()
		default:
			if n := bytes.IndexAny(c.data[c.pos:], " \t\r\n,:]}"); n >= 0 {
				c.pos += n
			} else {
				c.pos = len(c.data)
			}
		}
		if depth == 0 {
			return c.data[start:c.pos]
		}
	}
}

// rawString consumes the string at the cursor and returns it with its quotes.
func (c *jsonCursor) rawString() []byte {
	start := c.pos
	for c.pos++; c.data[c.pos] != '"'; c.pos++ {
		if c.data[c.pos] == '\\' {
			c.pos++
		}
	}
	c.pos++
	return c.data[start:c.pos]
}

// str consumes the string at the cursor, which must be a string; the result is valid until the data changes.
func (c *jsonCursor) str() []byte {
	c.peek()
	raw := c.rawString()
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return raw // impossible: the data is well-formed
	}
	return []byte(s)
}

// text consumes a string.
func (c *jsonCursor) text() ([]byte, error) {
	if c.peek() != '"' {
		return nil, fmt.Errorf("expected a string, got %.40s", c.value())
	}
	return c.str(), nil
}

// id consumes a token id.
func (c *jsonCursor) id() (uint32, error) {
	v := c.value()
	n, err := strconv.ParseUint(string(v), 10, 32)
	if err != nil || n >= maxVocab {
		return 0, fmt.Errorf("expected a token id below %[2]d, got %.40[1]s", v, maxVocab)
	}
	return uint32(n), nil
}

// appendQuoted appends s, valid UTF-8, as a JSON string.
func appendQuoted(dst []byte, s []byte) []byte {
	dst = append(dst, '"')
	for _, b := range s {
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, b)
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}
