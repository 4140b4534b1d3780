package tokenizer

import (
	"encoding/binary"
	"math/bits"
)

// The o200k pattern splits words where their case changes from lower to upper, allows marks in words, and keeps a
// contraction with its word, so it has separate functions.

// oneO200k returns the end of the pretoken of the o200k pattern that starts at i.
func (s *handSplitter) oneO200k(i int) int {
	text := s.text
	c, n := s.classes.at(text, i)
	j := i + n
	switch c {
	case upper, lower, letter:
		return s.contracted(s.word(i))
	case number:
		return s.digits(j)
	}
	after, width := newline, 0 // class after the first character; newline means none of interest
	if j < len(text) {
		after, width = s.classes.at(text, j)
	}
	// `[^\r\n\p{L}\p{N}]?` matches the first character, and a word follows.
	if c != newline && width > 0 && inWord(after) {
		if end := s.lowerWord(j); end > 0 {
			return s.contracted(end)
		}
		if c == mark { // a mark is also a word, without what follows it
			return s.contracted(j)
		}
		return s.contracted(s.word(j))
	}
	if c == mark {
		return s.contracted(j)
	}
	if c == other || text[i] == ' ' && after == other {
		if c != other {
			j += width
		}
		for j < len(text) {
			c, n := s.classes.at(text, j)
			if c != other && c != mark {
				break
			}
			j += n
		}
		for j < len(text) && (text[j] == '\r' || text[j] == '\n' || text[j] == '/') {
			j++
		}
		return j
	}
	return s.white(i)
}

func inWord(c class) bool { return c == upper || c == lower || c == letter || c == mark }

// word returns the end of the word that starts at i, where a character of a word must be.
func (s *handSplitter) word(i int) int {
	if end := s.lowerWord(i); end > 0 {
		return end
	}
	return s.run(upper, i)
}

// lowerWord matches `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` at i. It returns 0 if it does not
// match, that is, if there is only upper case.
func (s *handSplitter) lowerWord(i int) int {
	both := 0 // end of the last character that matches both parts
	for i < len(s.text) {
		c, n := s.classes.at(s.text, i)
		if c != upper && c != letter && c != mark {
			break
		}
		i += n
		if c != upper {
			both = i
		}
	}
	if i == len(s.text) {
		return both
	}
	if c, _ := s.classes.at(s.text, i); c != lower {
		return both
	}
	for i < len(s.text) {
		c, n := s.classes.at(s.text, i)
		if c != lower && c != letter && c != mark {
			break
		}
		i += n
	}
	return i
}

// contracted returns the end of the word that ends at i, including a contraction that follows it.
func (s *handSplitter) contracted(i int) int {
	if i < len(s.text) && s.text[i] == '\'' {
		return i + contraction(s.text[i:], true)
	}
	return i
}

// startsO200k marks the starts of pretokens of the o200k pattern.
func startsO200k(m *masks, b *[blockSize]byte) uint64 {
	up, slash := upperAndSlash(b)
	up &= m.letter
	slash &= below(m.limit)
	white := m.space | m.newline
	odd := ^(m.letter | m.number | white) & below(m.limit)
	ink := m.letter | m.number | odd

	// Newlines directly after odd characters belong to them, and so do slashes after those newlines.
	tail := m.newline | slash
	eaten := odd << 1 & m.newline
	afterEaten := (tail + eaten) &^ tail
	loose := odd // odd characters that are not part of a tail
	if eaten != 0 && slash&(m.newline<<1) != 0 {
		loose &^= fillUp(eaten, tail)
	}

	// A single odd character at the start of a pretoken joins the letters after it, like white space other than
	// newlines.
	odds := loose &^ (loose << 1) &^ (m.blank << 1)
	letters := m.letter &^ (m.letter << 1) &^ ((m.space | odds) << 1)
	starts := odds | letters | up&((m.letter&^up)<<1) | numbers(m.number, 3)
	starts |= m.newline &^ (white << 1) &^ (odd << 1)
	starts |= whites(m, ink, afterEaten)
	return contractedWords(starts, m, b)
}

// contractedWords joins 's, 're … to the words before them.
func contractedWords(starts uint64, m *masks, b *[blockSize]byte) uint64 {
	done := 0 // end of the last contraction, which another contraction cannot extend
	for open := m.apostrophe & (m.letter << 1); open != 0; open &= open - 1 {
		i := bits.TrailingZeros64(open)
		if i == done {
			continue
		}
		if n := contraction(b[i:m.limit], true); n > 0 {
			starts = starts&^(below(i+n)&^below(i)) | 1<<(i+n)
			done = i + n
		} else if i+3 > m.limit {
			return starts & below(i) // it may still become 're or 'ſ
		}
	}
	return starts
}

// upperAndSlash marks the bytes without the bit that makes ASCII letters lower case, and the slashes.
func upperAndSlash(b *[blockSize]byte) (up, slash uint64) {
	for k := 0; k < blockSize; k += 8 {
		x := binary.LittleEndian.Uint64(b[k:])
		up |= gather(^x<<2&highs) << k
		slash |= gather(equal(x&^highs, '/')&^x) << k
	}
	return up, slash
}

// fillUp spreads the bits of from towards higher positions as long as through has an unbroken run of ones.
func fillUp(from, through uint64) uint64 {
	for shift := 1; shift < blockSize; shift <<= 1 {
		from |= from << shift & through
		through &= through << shift
	}
	return from
}
