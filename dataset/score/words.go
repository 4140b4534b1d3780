package score

import (
	"unicode"
	"unicode/utf8"
)

// words calls f with the range of each word of a text: a maximal run of letters, marks, digits and underscores, in
// which a single apostrophe or hyphen may join two of them. Invalid UTF-8 is in no word.
func words(text []byte, f func(from, to int)) {
	for at := 0; at < len(text); {
		n := wordChar(text[at:])
		if n == 0 {
			_, n = utf8.DecodeRune(text[at:])
			at += n
			continue
		}
		from := at
		for n > 0 {
			at += n
			if n = wordChar(text[at:]); n == 0 {
				if j := joiner(text[at:]); j > 0 && wordChar(text[at+j:]) > 0 {
					n = j
				}
			}
		}
		f(from, at)
	}
}

// wordChar returns the length in bytes of the word character at the start of text, else 0.
func wordChar(text []byte) int {
	if len(text) == 0 {
		return 0
	}
	if c := text[0]; c < utf8.RuneSelf {
		if 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRune(text)
	if r == utf8.RuneError && n == 1 || !unicode.In(r, unicode.L, unicode.M, unicode.N) {
		return 0
	}
	return n
}

// joiner returns the length in bytes of the apostrophe or hyphen at the start of text, else 0.
func joiner(text []byte) int {
	switch {
	case len(text) > 0 && (text[0] == '\'' || text[0] == '-'):
		return 1
	case len(text) > 2 && string(text[:3]) == "’":
		return 3
	}
	return 0
}
