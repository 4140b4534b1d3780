package jinja

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Text returns Python's str(v), cut off after maxText bytes.
func Text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return repr(v)
}

// repr returns Python's repr(v), with the keys of a map in the order of their bytes. It is cut off after maxText
// bytes, because a list may contain the same list many times.
func repr(v any) string {
	var b strings.Builder
	writeRepr(&b, v, maxText)
	return b.String()
}

// writeRepr writes repr(v), or, if it is longer than limit bytes, more than limit bytes of it.
func writeRepr(b *strings.Builder, v any, limit int) {
	if b.Len() > limit {
		return
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(reprFloat(v))
	case string:
		writeQuoted(b, v, limit)
	case []any:
		for i, x := range v {
			b.WriteString([]string{"[", ", "}[min(i, 1)])
			if writeRepr(b, x, limit); b.Len() > limit {
				return
			}
		}
		b.WriteString([]string{"[]", "]"}[min(len(v), 1)])
	case map[string]any:
		for i, k := range keys(v) {
			b.WriteString([]string{"{", ", "}[min(i, 1)])
			writeQuoted(b, k.(string), limit)
			b.WriteString(": ")
			if writeRepr(b, v[k.(string)], limit); b.Len() > limit {
				return
			}
		}
		b.WriteString([]string{"{}", "}"}[min(len(v), 1)])
	default:
		panic(fmt.Sprintf("jinja: a value of type %T", v))
	}
}

func reprFloat(v float64) string {
	switch {
	case math.IsInf(v, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))
	case math.IsNaN(v):
		return "nan"
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func writeQuoted(b *strings.Builder, s string, limit int) {
	s = s[:min(len(s), limit+1)] // the rest is cut off
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, r := range s {
		if b.Len() > limit {
			return
		}
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r >= 0x7f && r <= 0xff && !unicode.IsPrint(r):
			fmt.Fprintf(b, `\x%02x`, r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			fmt.Fprintf(b, `\U%08x`, r)
		}
	}
	b.WriteByte(quote)
}

// truth returns Python's bool(v).
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// Equal returns Python's a == b. Values of more than maxWork parts count as unequal.
func Equal(a, b any) bool {
	left := maxWork
	return equal(a, b, &left)
}

// equal subtracts its work from the work that is left, and returns false if that is not enough.
func equal(a, b any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	if x, text := a.(string); text {
		y, text := b.(string)
		if !text || len(x) != len(y) {
			return false
		}
		*left -= len(x) / 16
		return *left >= 0 && x == y
	}
	if x, ok := a.([]any); ok {
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, func(a, b any) bool { return equal(a, b, left) })
	}
	if x, ok := a.(map[string]any); ok {
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, func(a, b any) bool { return equal(a, b, left) })
	}
	order, ok := compare(a, b)
	return ok && order == 0 || a == nil && b == nil
}

// compare orders two numbers or two texts; ok is false for other values, and for NaN.
func compare(a, b any) (order int, ok bool) {
	if x, text := a.(string); text {
		y, text := b.(string)
		return strings.Compare(x, y), text
	}
	if x, whole := wholeNumber(a); whole {
		if y, whole := wholeNumber(b); whole {
			switch {
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	}
	if order, ok := compareExactly(a, b); ok {
		return order, true
	}
	x, first := float(a)
	y, second := float(b)
	switch {
	case !first || !second || math.IsNaN(x) || math.IsNaN(y):
		return 0, false
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	}
	return 0, true
}

// compareExactly orders a whole number and a finite float. Their nearest floats may be equal where they are not.
func compareExactly(a, b any) (order int, ok bool) {
	x, whole := wholeNumber(a)
	y, isFloat := b.(float64)
	if z, first := a.(float64); first {
		x, whole = wholeNumber(b)
		y, isFloat = z, true
		defer func() { order = -order }()
	}
	if !whole || !isFloat || !(math.Abs(y) < 1<<63) {
		return 0, false
	}
	part := math.Floor(y)
	if order = cmp.Compare(x, int64(part)); order == 0 && y > part {
		order = -1
	}
	return order, true
}

// wholeNumber returns v as a Python int; a bool is one, too.
func wholeNumber(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func float(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	n, ok := wholeNumber(v)
	return float64(n), ok
}
