package curate

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// lineFacts is what one pass over the lines of a text finds out. A line ends with LF.
type lineFacts struct {
	newlines int
	lines    int // as str.splitlines counts them: no line behind the last LF
	bullets  int // lines that start with • or -, behind white space
	ellipses int // lines that end with ... or …, before white space

	// Pieces between runs of LF, of which an empty one may be at each end (Gopher).
	pieces, dupPieces, dupPieceChars int
	// The stripped text between runs of two and more LF (Gopher).
	paragraphs, dupParagraphs, dupParagraphChars int
	// Lines that are not blank (FineWeb, C4, code).
	filled, ended, short, dupFilledChars int
	longest                              int    // characters of the longest line
	top                                  [3]int // characters of the three longest lines, longest first
}

// shortLine is the length in characters up to which FineWeb calls a line short.
const shortLine = 30

func (f *lineFacts) scan(text []byte, seen *table) {
	*f = lineFacts{}
	ascii := isASCII(text)
	count := func(b []byte) int {
		if ascii {
			return len(b)
		}
		return utf8.RuneCount(b)
	}
	seen.reset(bytes.Count(text, []byte("\n")) + 1)
	for rest := text; len(rest) > 0; {
		line := rest
		i := bytes.IndexByte(rest, '\n')
		if i >= 0 {
			line, rest = rest[:i], rest[i+1:]
			f.newlines++
		} else {
			rest = nil
		}
		f.lines++
		if len(line) == 0 {
			f.top[0], f.top[1], f.top[2] = rank3(f.top, 0)
			continue
		}
		chars := count(line)
		f.top[0], f.top[1], f.top[2] = rank3(f.top, chars)
		dup := seen.slots[seen.add(xxh3.Hash(line))].n > 1
		f.pieces++
		if dup {
			f.dupPieces++
			f.dupPieceChars += chars
		}
		bare := bytes.TrimSpace(line)
		if len(bare) == 0 {
			continue
		}
		f.filled++
		if dup {
			f.dupFilledChars += chars
		}
		if chars <= shortLine {
			f.short++
		}
		if endsSentence(line) {
			f.ended++
		}
		if bare[0] == '-' || bytes.HasPrefix(bare, []byte("•")) {
			f.bullets++
		}
		if bytes.HasSuffix(bare, []byte("...")) || bytes.HasSuffix(bare, []byte("…")) {
			f.ellipses++
		}
	}
	f.longest = f.top[0]
	if len(text) > 0 {
		empty := 0
		if text[0] == '\n' {
			empty++
		}
		if text[len(text)-1] == '\n' {
			empty++
		}
		f.pieces += empty
		f.dupPieces += max(empty-1, 0)
	}
	f.paragraph(bytes.TrimSpace(text), seen, count)
}

// rank3 puts n among the three largest.
func rank3(t [3]int, n int) (a, b, c int) {
	switch {
	case n > t[0]:
		return n, t[0], t[1]
	case n > t[1]:
		return t[0], n, t[1]
	case n > t[2]:
		return t[0], t[1], n
	}
	return t[0], t[1], t[2]
}

func (f *lineFacts) paragraph(text []byte, seen *table, count func([]byte) int) {
	seen.reset(f.newlines + 1)
	for {
		p := text
		i := bytes.Index(text, []byte("\n\n"))
		if i >= 0 {
			p, text = text[:i], bytes.TrimLeft(text[i:], "\n")
		}
		f.paragraphs++
		if seen.slots[seen.add(xxh3.Hash(p))].n > 1 {
			f.dupParagraphs++
			f.dupParagraphChars += count(p)
		}
		if i < 0 {
			return
		}
	}
}

// endsSentence says whether the last character is sentence-terminal punctuation (Unicode property STerm, and the full
// stop of full width).
func endsSentence(line []byte) bool {
	c := line[len(line)-1]
	if c < utf8.RuneSelf {
		return c == '.' || c == '!' || c == '?'
	}
	r, _ := utf8.DecodeLastRune(line)
	return unicode.Is(unicode.STerm, r) || r == '．'
}

func isASCII(b []byte) bool {
	for len(b) >= 8 {
		if (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7])&0x80 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
