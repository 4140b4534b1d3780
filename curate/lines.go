package curate

import (
	"bytes"
	"math/bits"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// lineFacts holds the results of one pass over the lines of a text. A line ends with LF.
type lineFacts struct {
	newlines int
	lines    int // counted like Python's str.splitlines: no line after the last LF
	bullets  int // lines that start with • or -, behind white space
	ellipses int // lines that end with ... or …, before white space

	// Pieces between runs of LF; the first and the last may be empty (Gopher).
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

// lineScan is the state of the pass.
type lineScan struct {
	*lineFacts
	text             []byte
	masks            *maskSet
	seen, paragraphs *table

	from, to int    // bounds of the text without surrounding white space, which paragraphs are parts of
	hash     uint64 // hash of the lines of a paragraph so far
	chars    int    // characters of these lines and the LF between them; 0 before the first line
}

func (f *lineFacts) scan(text []byte, m *maskSet, seen, paragraphs *table) {
	*f = lineFacts{}
	lines, before := 1, uint64(0) // lines that are not empty; 1 if the byte before the block is LF
	for i := range m.blocks {
		n := m.blocks[i].newline
		f.newlines += bits.OnesCount64(n)
		lines += bits.OnesCount64((n<<1 | before) &^ n)
		before = n >> 63
	}
	seen.reset(lines + min(lines, 1<<12)) // an emptier table has fewer collisions
	paragraphs.reset(min(lines, f.newlines/2+1))
	s := lineScan{lineFacts: f, text: text, masks: m, seen: seen, paragraphs: paragraphs}
	s.from, s.to = trim(text, 0, len(text))
	start := 0
	for i := range m.blocks {
		for ends := m.blocks[i].newline; ends != 0; ends &= ends - 1 {
			end := blockSize*i + bits.TrailingZeros64(ends)
			s.line(start, end)
			start = end + 1
		}
	}
	if start < len(text) {
		s.line(start, len(text))
	}
	s.endParagraph()
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
}

// line counts the line text[start:end].
func (s *lineScan) line(start, end int) {
	s.lines++
	if start == end {
		s.endParagraph()
		return
	}
	chars := s.masks.chars(start, end)
	if chars > s.top[2] {
		s.top[0], s.top[1], s.top[2] = rank3(s.top, chars)
	}
	line := s.text[start:end]
	hash := xxh3.Hash(line)
	dup := s.seen.slots[s.seen.add(hash)].n > 1
	s.pieces++
	if dup {
		s.dupPieces++
		s.dupPieceChars += chars
	}
	from, to := trim(s.text, start, end)
	if s.from <= start && end <= s.to {
		s.paragraph(hash, chars)
	} else if a, b := max(start, s.from), min(end, s.to); a < b {
		s.paragraph(xxh3.Hash(s.text[a:b]), s.masks.chars(a, b))
	}
	if from == to {
		return
	}
	// Few branches, because processors cannot predict which lines are short or end a sentence.
	s.filled++
	s.short += less(chars, shortLine+1)
	bare := s.text[from:to]
	last := line[len(line)-1]
	s.ended += int(sentenceEnd[last])
	if dup {
		s.dupFilledChars += chars
	}
	if last >= utf8.RuneSelf && endsSentence(line) {
		s.ended++
	}
	if bare[0] == '-' || bare[0] >= utf8.RuneSelf && bytes.HasPrefix(bare, []byte("•")) {
		s.bullets++
	}
	if n := len(bare); n >= 3 && (string(bare[n-3:]) == "..." || string(bare[n-3:]) == "…") {
		s.ellipses++
	}
}

// less returns 1 if a < b, else 0.
func less(a, b int) int { return int(uint64(a-b) >> 63) }

// sentenceEnd returns 1 for sentence-terminal punctuation in ASCII, else 0.
var sentenceEnd = [256]uint8{'.': 1, '!': 1, '?': 1}

// paragraph counts a line that belongs to a paragraph.
func (s *lineScan) paragraph(hash uint64, chars int) {
	s.hash = (bits.RotateLeft64(s.hash, 29) ^ hash) * mix3
	s.chars += chars + 1
}

func (s *lineScan) endParagraph() {
	if s.chars == 0 {
		return
	}
	s.lineFacts.paragraphs++
	if s.paragraphs.slots[s.paragraphs.add(s.hash)].n > 1 {
		s.dupParagraphs++
		s.dupParagraphChars += s.chars - 1
	}
	s.hash, s.chars = 0, 0
}

// rank3 inserts n into the three largest.
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

// trim returns the bounds of text[from:to] without surrounding white space.
func trim(text []byte, from, to int) (int, int) {
	for from < to && blank(text[from]) {
		from++
	}
	for from < to && blank(text[to-1]) {
		to--
	}
	if from < to && (text[from] >= utf8.RuneSelf || text[to-1] >= utf8.RuneSelf) {
		right := bytes.TrimRightFunc(text[from:to], unicode.IsSpace)
		to = from + len(right)
		from = to - len(bytes.TrimLeftFunc(right, unicode.IsSpace))
	}
	return from, to
}

// blank reports whether c is ASCII white space as defined by unicode.IsSpace.
func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// endsSentence reports whether the last character, which is above ASCII, is sentence-terminal punctuation (Unicode
// property STerm, and the full-width full stop).
func endsSentence(line []byte) bool {
	r, _ := utf8.DecodeLastRune(line)
	return unicode.Is(unicode.STerm, r) || r == '．'
}
