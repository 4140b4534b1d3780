package safetensors

import (
	"encoding/json"
	"fmt"
	"math"
)

// scanner reads the small part of JSON that headers use: objects, strings, and arrays of unsigned integers. It exists
// because encoding/json keeps the last of two equal keys, where the format requires an error. Errors contain the byte
// position in the header.
type scanner struct {
	s []byte // valid UTF-8
	i int
}

func (z *scanner) fail(format string, args ...any) error {
	return fmt.Errorf("header byte %d: %s", z.i, fmt.Sprintf(format, args...))
}

func (z *scanner) space() {
	for z.i < len(z.s) && (z.s[z.i] == ' ' || z.s[z.i] == '\n' || z.s[z.i] == '\t' || z.s[z.i] == '\r') {
		z.i++
	}
}

// accept skips white space and consumes c if it is next.
func (z *scanner) accept(c byte) bool {
	z.space()
	if z.i < len(z.s) && z.s[z.i] == c {
		z.i++
		return true
	}
	return false
}

func (z *scanner) expect(c byte) error {
	if !z.accept(c) {
		if z.i >= len(z.s) {
			return z.fail("expected %q, but the header ends", c)
		}
		return z.fail("expected %[2]q, got %[1]q", z.s[z.i], c)
	}
	return nil
}

// list parses open, items separated by commas, and shut.
func (z *scanner) list(open, shut byte, item func() error) error {
	if err := z.expect(open); err != nil {
		return err
	}
	if z.accept(shut) {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if z.accept(shut) {
			return nil
		}
		if err := z.expect(','); err != nil {
			return err
		}
	}
}

// object parses an object and passes each key to field, which parses the value.
func (z *scanner) object(field func(key string) error) error {
	return z.list('{', '}', func() error {
		key, err := z.str()
		if err != nil {
			return err
		}
		if err := z.expect(':'); err != nil {
			return err
		}
		return field(key)
	})
}

// stringMap parses an object whose values are all strings and whose keys are all different.
func (z *scanner) stringMap() (map[string]string, error) {
	m := map[string]string{}
	err := z.object(func(key string) error {
		if _, dup := m[key]; dup {
			return z.fail("key %q appears twice", key)
		}
		v, err := z.str()
		m[key] = v
		return err
	})
	return m, err
}

func (z *scanner) str() (string, error) {
	if err := z.expect('"'); err != nil {
		return "", err
	}
	start, escaped := z.i, false
	for ; z.i < len(z.s); z.i++ {
		switch c := z.s[z.i]; {
		case c == '"':
			raw := z.s[start:z.i]
			z.i++
			if !escaped {
				return string(raw), nil
			}
			var out string
			if err := json.Unmarshal(z.s[start-1:z.i], &out); err != nil {
				return "", z.fail("bad escape in string")
			}
			return out, nil
		case c == '\\':
			escaped = true
			z.i++ // the escaped byte cannot end the string
		case c < 0x20:
			return "", z.fail("control character in string")
		}
	}
	return "", z.fail("unterminated string")
}

// uint parses a non-negative integer without sign, fraction, exponent or leading zero.
func (z *scanner) uint() (int64, error) {
	z.space()
	start := z.i
	var n int64
	for ; z.i < len(z.s) && z.s[z.i] >= '0' && z.s[z.i] <= '9'; z.i++ {
		d := int64(z.s[z.i] - '0')
		if n > (math.MaxInt64-d)/10 {
			return 0, z.fail("number is too large")
		}
		n = n*10 + d
	}
	if z.i == start || (z.s[start] == '0' && z.i > start+1) {
		return 0, z.fail("expected an unsigned integer")
	}
	return n, nil
}

// uints appends the elements of an array of at most limit unsigned integers to dst.
func (z *scanner) uints(dst []int64, limit int) ([]int64, error) {
	err := z.list('[', ']', func() error {
		n, err := z.uint()
		if err == nil && len(dst) == limit {
			err = z.fail("more than %d numbers", limit)
		}
		dst = append(dst, n)
		return err
	})
	return dst, err
}
