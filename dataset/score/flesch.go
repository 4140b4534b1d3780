package score

import (
	"bytes"
	"math"
	"unicode/utf8"
)

// Flesch is the Flesch reading ease (Flesch 1948, doi 10.1037/h0057532):
//
//	206.835 − 1.015 · words/sentences − 84.6 · syllables/words
//
// High is easy: 90 is for children of eleven, 30 for graduates. English only, and not for source code.
//
// A word has a letter a–z. Syllables are runs of the letters a, e, i, o, u and y, minus one for an e at the end,
// unless it follows a vowel or a consonant and l (as in "table"); at least one. A sentence ends at . ! ? or … before
// white space or the end, with optional closing quotes and brackets, or at an empty line; a sentence without a word
// does not count. NaN without a word. No memory.
func Flesch(text []byte) float64 {
	count, syllables, sentences := 0, 0, 0
	done := 0 // end of the last sentence
	pending := false
	words(text, func(from, to int) {
		n := syllablesOf(text[from:to])
		if n == 0 {
			return
		}
		if pending && endsSentence(text[done:from]) {
			sentences++
		}
		count, syllables, pending, done = count+1, syllables+n, true, to
	})
	if count == 0 {
		return math.NaN()
	}
	sentences++ // the last one, even without an end mark
	return 206.835 - float64(1.015*(float64(count)/float64(sentences))) -
		float64(84.6*(float64(syllables)/float64(count)))
}

// endsSentence reports whether a sentence ends in the text between two words.
func endsSentence(gap []byte) bool {
	for i, c := range gap {
		switch {
		case c == '.' || c == '!' || c == '?' || bytes.HasPrefix(gap[i:], []byte("…")):
			rest := gap[i:]
			_, n := utf8.DecodeRune(rest)
			for rest = rest[n:]; closing(rest) > 0; {
				rest = rest[closing(rest):]
			}
			if len(rest) > 0 && isSpace(rest[0]) {
				return true
			}
		case c == '\n':
			line := gap[i+1:]
			if end := bytes.IndexByte(line, '\n'); end >= 0 && len(bytes.TrimSpace(line[:end])) == 0 {
				return true
			}
		}
	}
	return false
}

// closing returns the length of the closing quote, bracket or mark at the start of text, else 0.
func closing(text []byte) int {
	for _, c := range []string{"\"", "'", ")", "]", "}", "”", "’", "»", ".", "!", "?", "…"} {
		if bytes.HasPrefix(text, []byte(c)) {
			return len(c)
		}
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// syllablesOf estimates the syllables of a word; 0 if it has no letter.
func syllablesOf(word []byte) int {
	n, letters, last := 0, 0, byte(0)
	for _, c := range word {
		c |= 0x20
		if c < 'a' || c > 'z' {
			last = 0
			continue
		}
		letters++
		if vowel(c) && !vowel(last) {
			n++
		}
		last = c
	}
	if letters == 0 {
		return 0
	}
	if k := len(word); n > 1 && last == 'e' && word[k-1]|0x20 == 'e' && !vowel(word[k-2]|0x20) {
		if l := word[k-2]|0x20 == 'l'; !l || k < 3 || vowel(word[k-3]|0x20) {
			n--
		}
	}
	return max(n, 1)
}

func vowel(c byte) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u', 'y':
		return true
	}
	return false
}
