package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A segment of a template is text, or the content between {{ and }} or between {% and %}.
type segment struct {
	kind byte // 't' text, '{' an expression, '%' a statement
	text string
	line int
}

// cut cuts a template into segments. Comments are left out.
func cut(source string) ([]segment, error) {
	var list []segment
	line, trim := 1, false
	for source != "" {
		at := opening(source)
		text := source[:at]
		if trim {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		if at == len(source) {
			return append(list, segment{'t', text, line}), nil
		}
		begin := line + strings.Count(source[:at], "\n")
		kind := source[at+1]
		end := closing(source, at+2, kind)
		if end < 0 {
			return nil, fail(begin, "{%c without its end", kind)
		}
		inner := source[at+2 : end]
		if strings.HasPrefix(inner, "-") {
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		}
		trim = len(inner) > 0 && inner[len(inner)-1] == '-' && (kind != '#' || len(inner) > 1)
		if text != "" {
			list = append(list, segment{'t', text, line})
		}
		if kind != '#' {
			list = append(list, segment{kind, strings.TrimSuffix(strings.TrimPrefix(inner, "-"), "-"), begin})
		}
		line = begin + strings.Count(source[at:end], "\n")
		source = source[end+2:]
	}
	return list, nil
}

// opening returns the position of the next {{, {% or {#; the length of s if there is none.
func opening(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return len(s)
}

// closing returns the position at which a segment ends, −1 if there is none. It skips quoted texts, except in a
// comment, and braces that close one within the expression.
func closing(s string, from int, kind byte) int {
	end := kind
	if kind == '{' {
		end = '}'
	}
	quote, braces := byte(0), 0
	for i := from; i+1 < len(s); i++ {
		c := s[i]
		switch {
		case kind == '#':
			if c == '#' && s[i+1] == '}' {
				return i
			}
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			braces++
		case c == end && s[i+1] == '}' && braces == 0:
			return i
		case c == '}':
			braces--
		}
	}
	return -1
}

// A token of an expression: a name, a number, a text or a sign.
type token struct {
	kind byte // 'n' name, 'i' whole number, 'f' number, 's' text, 'o' sign, 0 the end
	text string
}

var signs = []string{"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "(", ")", "[", "]",
	"{", "}", ",", ".", ":", "|", "="}

// tokens cuts an expression.
func tokens(s string, line int) ([]token, error) {
	var list []token
	for s != "" {
		c := s[0]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			s = s[1:]
		case c == '\'' || c == '"':
			text, rest, err := quoted(s, line)
			if err != nil {
				return nil, err
			}
			list, s = append(list, token{'s', text}), rest
		case c >= '0' && c <= '9':
			n, kind := number(s)
			list, s = append(list, token{kind, s[:n]}), s[n:]
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			n := strings.IndexFunc(s, func(r rune) bool {
				return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
			})
			if n < 0 {
				n = len(s)
			}
			list, s = append(list, token{'n', s[:n]}), s[n:]
		default:
			sign := ""
			for _, x := range signs {
				if sign == "" && strings.HasPrefix(s, x) {
					sign = x
				}
			}
			if sign == "" {
				r, _ := utf8.DecodeRuneInString(s)
				return nil, fail(line, "%q means nothing here", r)
			}
			list, s = append(list, token{'o', sign}), s[len(sign):]
		}
	}
	return list, nil
}

// number returns how long the number at the start of s is, and its kind.
func number(s string) (n int, kind byte) {
	digits := func() {
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
	}
	kind = 'i'
	digits()
	if n+1 < len(s) && s[n] == '.' && s[n+1] >= '0' && s[n+1] <= '9' {
		kind, n = 'f', n+1
		digits()
	}
	if e := n; e < len(s) && (s[e] == 'e' || s[e] == 'E') {
		n++
		if n < len(s) && (s[n] == '+' || s[n] == '-') {
			n++
		}
		if from := n; true {
			if digits(); n == from {
				return e, kind
			}
		}
		kind = 'f'
	}
	return n, kind
}

var escapes = map[byte]string{
	'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", '\n': "", 'a': "\a", 'b': "\b", 'f': "\f",
	'v': "\v", '0': "\x00",
}

var escapeDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// quoted reads the text in quotes at the start of s, with Python's escapes.
func quoted(s string, line int) (text, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return b.String(), s[i+1:], nil
		case c != '\\' || i+1 == len(s):
			b.WriteByte(c)
		default:
			i++
			if known, ok := escapes[s[i]]; ok {
				b.WriteString(known)
				continue
			}
			n := escapeDigits[s[i]]
			if n == 0 || i+n >= len(s) {
				b.WriteByte('\\')
				b.WriteByte(s[i])
				continue
			}
			r, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil {
				return "", "", fail(line, "\\%s is no character", s[i:i+1+n])
			}
			b.WriteRune(rune(r))
			i += n
		}
	}
	return "", "", fail(line, "a text without its closing quote")
}
